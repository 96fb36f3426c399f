"""Which device is chosen, and what is said about it."""

import pytest
import torch

import attention


@pytest.fixture
def machine(monkeypatch):
    """A machine that has what the test says it has."""

    def has(cuda=0, mps=False, wanted=None):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda d: "Imaginary 9000")
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
        if wanted is None:
            monkeypatch.delenv("ATTENTION_DEVICE", raising=False)
        else:
            monkeypatch.setenv("ATTENTION_DEVICE", wanted)

    return has


def test_cuda_then_mps_then_cpu(machine):
    machine(cuda=1, mps=True)
    assert attention.device() == torch.device("cuda")
    assert attention.describe_device() == "Computing on the GPU Imaginary 9000 (CUDA)."
    machine(mps=True)
    assert attention.device() == torch.device("mps")
    assert attention.describe_device() == "Computing on the Apple GPU (MPS)."
    machine()
    assert attention.device() == torch.device("cpu")
    said = "Computing on the CPU. No GPU was found, and none is needed."
    assert attention.describe_device() == said


def test_the_environment_overrides(machine):
    machine(cuda=2, mps=True, wanted="cpu")
    assert attention.device() == torch.device("cpu")
    assert attention.describe_device() == "Computing on the CPU, as ATTENTION_DEVICE asks."
    machine(cuda=2, wanted="cuda:1")
    assert attention.device() == torch.device("cuda:1")
    machine(cuda=1, mps=True, wanted="mps")
    assert attention.device() == torch.device("mps")
    machine(cuda=1, wanted="  ")
    assert attention.device() == torch.device("cuda")


@pytest.mark.parametrize("wanted", ["gpu", "cuda:x", "xla", "meta", "CPU0"])
def test_an_override_that_names_no_device_is_refused(machine, wanted):
    machine(cuda=1, wanted=wanted)
    with pytest.raises(ValueError, match=f"must be cpu, cuda, cuda:N or mps; got '{wanted}'"):
        attention.device()


@pytest.mark.parametrize("wanted,cuda", [("cuda", 0), ("cuda:1", 1), ("mps", 1)])
def test_an_override_that_this_machine_lacks_is_refused(machine, wanted, cuda):
    machine(cuda=cuda, wanted=wanted)
    with pytest.raises(ValueError, match=f"asks for '{wanted}', which this machine does not have"):
        attention.device()


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU: CUDA not found")
def test_masks_and_positions_are_made_where_they_are_needed():
    where = torch.device("cuda")
    assert attention.causal_mask(3, device=where).device.type == "cuda"
    assert attention.padding_mask(torch.tensor([1, 2], device=where)).device.type == "cuda"
    for positions in attention.POSITIONS:
        for kind in (attention.LanguageModel, attention.Encoder):
            model = kind(11, 8, 2, 1, positions=positions).to(where)
            ids = torch.randint(11, (2, 5), device=where)
            assert model(ids).device.type == "cuda"
        model = attention.LanguageModel(11, 8, 2, 1, positions=positions).to(where)
        assert model.generate(ids, 3).device.type == "cuda"
