"""The driver's end: start a sandbox, run cells in it, call its functions as if they were here."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import torch.overrides
from torch import Tensor, nn

from attention.checks._base import NotYet

from . import wire
from .sandbox import Sandbox

LIMITS = {"memory": 1536 << 20, "files": 64, "processes": 24, "cpu": 180, "size": 32 << 20}
RESIDENT = 2560 << 20  # bytes that all processes of a sandbox may hold together


@dataclass(frozen=True)
class Patience:
    """Seconds: to import torch, for a cell, a call, an exercise, a whole submission."""

    start: float = 60.0
    cell: float = 15.0
    call: float = 8.0
    exercise: float = 30.0
    submission: float = 150.0


class Stopped(NotYet):
    """The sandbox had to be ended, or ended itself; the message says why, in a sentence."""


class Remote:
    """One running sandbox. After `Stopped` it is of no more use: start another."""

    def __init__(self, sandbox: Sandbox, user: int, patience: Patience | None = None) -> None:
        self.sandbox, self.user, self.patience = sandbox, user, patience or Patience()
        self.process = sandbox.start(user)
        assert self.process.stdin and self.process.stdout
        self.write, self.read = self.process.stdin.fileno(), self.process.stdout.fileno()
        self.count, self.full, self.alive = 0, False, True
        self.warm = False  # whether what optimizers import is there, which takes seconds
        self.left = float("inf")  # seconds that may still be spent in the sandbox
        until = time.monotonic() + self.patience.start
        with self.ending("it did not start"):
            wire.send(self.write, {"limits": LIMITS}, [], until)
            head, _ = wire.receive(self.read, until)
            if head != {"ready": True}:
                raise wire.Broken("it did not say that it is ready")
        threading.Thread(target=self._watch, daemon=True).start()

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self.alive = False
        if self.process.returncode is None:
            self.sandbox.stop(self.process, self.user)

    def _watch(self) -> None:
        while self.alive:
            if resident(self.process.pid) > RESIDENT:
                self.full = True
                with contextlib.suppress(OSError):
                    self.process.kill()
                return
            time.sleep(0.2)

    @contextlib.contextmanager
    def ending(self, late: str) -> Iterator[None]:
        """Turn whatever goes wrong on the wire into Stopped, and end the sandbox."""
        why = ""
        try:
            yield
        except wire.Late:
            why = late
        except wire.Ended:
            why = "your code ended the program that runs it"
        except (wire.Broken, KeyError, IndexError, TypeError, ValueError, AttributeError,
                OverflowError, RecursionError, RuntimeError) as error:  # fmt: skip
            why = f"your code disturbed the program that runs it ({type(error).__name__})"
        if why:
            why = "your code took more memory than there is for it" if self.full else why
            self.stop()
            raise Stopped(why) from None

    def ask(
        self, task: str, blobs: list[bytes], late: str, seconds: float,
        functions: list[Callable[..., Any]] | None = None, **about: Any,
    ) -> tuple[dict[str, Any], list[bytes], list[Exception]]:  # fmt: skip
        """Send a request and wait for its answer; meanwhile answer the calls that come back."""
        if not self.alive:
            raise Stopped("the program that runs your code has ended")
        self.count += 1
        if seconds > self.left:
            seconds, late = self.left, "your code has used up its time for this exercise"
        start, raised = time.monotonic(), []
        until = start + seconds
        try:
            with self.ending(late):
                wire.send(self.write, {"id": self.count, "task": task, **about}, blobs, until)
                while True:
                    head, blobs = wire.receive(self.read, until)
                    if "callback" not in head:
                        break
                    self._answer(head, blobs, functions or [], raised, until)
                if head.get("id") != self.count:
                    raise wire.Broken("an answer to another question")
        finally:
            self.left -= time.monotonic() - start
        return head, blobs, raised

    def _answer(
        self, head: dict[str, Any], blobs: list[bytes], functions: list[Callable[..., Any]],
        raised: list[Exception], until: float,
    ) -> None:  # fmt: skip
        """Call the function of ours that was handed over as an argument."""
        if len(raised) > 1000:
            raise wire.Broken("it calls back without an end")
        function = functions[int(head["callback"])]
        args = [wire.unpack(x, blobs, unknown) for x in head["args"]]
        out: list[bytes] = []
        try:
            value = wire.pack(function(*args), out, lambda x: {"other": type(x).__name__})
        except Exception as error:  # a check's own sentence, or a shape that does not fit
            raised.append(error)
            said = {"raised": len(raised) - 1, "text": str(error)[:500]}
            wire.send(self.write, said, [], until)
        else:
            wire.send(self.write, {"value": value}, out, until)

    def run(self, source: str) -> str:
        """Run a cell; "" or the sentence of its error."""
        seconds = self.patience.cell
        late = f"this cell still ran after {seconds:g} seconds"
        head, _, _ = self.ask("run", [], late, seconds, source=source)
        return f"{head['error']}: {head['text']}" if "error" in head else ""

    def prepare(self) -> None:
        """Let the sandbox import what an optimizer needs, at nobody's cost."""
        left, self.left = self.left, float("inf")
        if not self.warm:
            self.ask("warm", [], "it did not start", self.patience.start)
        self.left, self.warm = left, True

    def function(self, name: str) -> Stand | None:
        """A stand-in for the submission's function of this name, None where there is none."""
        head, _, _ = self.ask("look", [], "it does not answer", self.patience.call, name=name)
        return Stand(self, name) if head.get("callable") is True else None


class Stand:
    """A function of the submission. Calls go to the sandbox, plain values come back."""

    def __init__(self, remote: Remote, name: str) -> None:
        self.remote, self.__name__, self.seconds = remote, name, remote.patience.call
        self.names: set[str] = set()
        self.called: set[str] = set()
        self.shapes: list[tuple[int, ...]] = []
        self.__code__ = SimpleNamespace(co_names=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        functions = [a for a in args if callable(a) and not isinstance(a, Tensor | nn.Module)]
        blobs: list[bytes] = []
        if any(isinstance(a, torch.optim.Optimizer) for a in args):
            self.remote.prepare()

        def other(value: Any) -> Any:
            if isinstance(value, Tensor):
                return True  # it wants a gradient
            if isinstance(value, nn.Sequential):
                return {"module": layers(value), "state": wire.pack(state(value), blobs, other)}
            if isinstance(value, torch.optim.SGD):
                return {"sgd": float(value.defaults["lr"])}  # of the model that came before it
            return {"function": next(i for i, f in enumerate(functions) if f is value)}

        head, blobs, raised = self.remote.ask(
            "call", blobs, f"{self.__name__} still ran after {self.seconds:g} seconds; look for a "
            "loop that never ends", self.seconds, functions, name=self.__name__,
            args=[wire.pack(a, blobs, other) for a in args],
            kwargs={k: wire.pack(a, blobs, other) for k, a in kwargs.items()},
        )  # fmt: skip
        with self.remote.ending(""):
            if "error" in head:
                error = self._error(head, raised)
            else:
                error, leaves = None, [a for a in args if _wants(a)]
                result = wire.unpack(head["value"], blobs, lambda x: _graph(self.remote, x, leaves))
                self._note(head)
                self._mirror(args, [wire.unpack(x, blobs, unknown) for x in head["args"]])
        if error is not None:
            raise error
        replay(self)
        return result

    def _error(self, head: dict[str, Any], raised: list[Exception]) -> Exception:
        if head.get("raised") is not None:
            return raised[int(head["raised"])]
        name, text = str(head["error"])[:60], str(head["text"])[:800]
        if name == "NotImplementedError":
            return NotImplementedError(text)
        return type(name, (Exception,), {})(text)

    def _note(self, head: dict[str, Any]) -> None:
        """What the sandbox says about how the value came about; it may lie, and gain nothing."""
        self.names |= {str(x) for x in head["names"]}
        self.called |= {str(x) for x in head["called"]}
        self.shapes = [tuple(int(n) for n in shape[:8]) for shape in head["shapes"]]
        self.__code__ = SimpleNamespace(co_names=tuple(map(str, head["code"])))

    def _mirror(self, args: tuple[Any, ...], after: list[Any]) -> None:
        """Change our arguments in place as the function changed its own."""
        for mine, changed in zip(args, after, strict=True):
            if isinstance(mine, Tensor) and isinstance(changed, Tensor):
                if changed.shape == mine.shape and changed.dtype == mine.dtype:
                    with torch.no_grad():
                        mine.copy_(changed)
            elif isinstance(mine, list) and isinstance(changed, list):
                mine[:] = changed
            elif isinstance(mine, nn.Module) and isinstance(changed, list):
                for p, (value, slope) in zip(mine.parameters(), changed, strict=True):
                    with torch.no_grad():
                        p.copy_(value)
                        p.grad = None if slope is None else slope.reshape(p.shape).to(p)


def layers(model: nn.Sequential) -> list[list[Any]]:
    """How to build a small model again: the kinds and the sizes of its layers."""
    made = []
    for layer in model:
        if isinstance(layer, nn.Embedding):
            made.append(["Embedding", layer.num_embeddings, layer.embedding_dim])
        elif isinstance(layer, nn.Linear):
            made.append(["Linear", layer.in_features, layer.out_features, layer.bias is not None])
        else:
            raise TypeError(f"a model to hand over is built of Embedding and Linear; got {layer}")
    return made


def state(model: nn.Module) -> list[tuple[Tensor, Tensor | None]]:
    """A model's parameters, each with the gradient that lies there."""
    return [(p.detach(), p.grad) for p in model.parameters()]


def replay(stand: Stand) -> None:
    """Let a check that watches torch's functions see those that ran in the sandbox."""
    if not torch._C._is_torch_function_mode_enabled():
        return
    for name in stand.names:
        torch.overrides.handle_torch_function(_named(name), ())
    for shape in stand.shapes:
        with contextlib.suppress(RuntimeError, TypeError, OverflowError):
            torch.empty(shape, device="meta")


def _named(name: str) -> Callable[[], None]:
    def nothing() -> None:
        pass

    nothing.__name__ = name
    return nothing


def _wants(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def unknown(made: dict[str, Any]) -> Any:
    """A value of a class that does not travel: an object of a class with that name."""
    if "of" in made:
        return made["of"]
    return type(str(made["other"])[:60], (), {})()


def _graph(remote: Remote, made: dict[str, Any], leaves: list[Tensor]) -> Any:
    if "of" not in made or not leaves:
        return unknown(made)
    return Across.apply(remote, int(made["grad"]["graph"]), made["of"], *leaves)


class Across(torch.autograd.Function):
    """A value of the sandbox whose gradient is asked for there."""

    @staticmethod
    def forward(ctx: Any, remote: Remote, graph: int, value: Tensor, *leaves: Tensor) -> Tensor:
        ctx.remote, ctx.graph, ctx.like = remote, graph, [(x.shape, x.dtype) for x in leaves]
        return value.clone()

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        blobs: list[bytes] = []
        slope = wire.pack(slopes[0], blobs, lambda _: None)
        head, blobs, _ = ctx.remote.ask(
            "back",
            blobs,
            "the gradient did not come in time",
            ctx.remote.patience.call,
            graph=ctx.graph,
            slope=slope,
        )
        with ctx.remote.ending(""):
            if "error" in head:
                raise RuntimeError(str(head["text"]))
            found = wire.unpack(head["value"], blobs, unknown)
            for x, (shape, dtype) in zip(found, ctx.like, strict=True):
                if x is not None and (x.shape != shape or x.dtype != dtype):
                    raise wire.Broken("a gradient of another shape")
        return (None, None, None, *found)


def resident(pid: int) -> int:
    """Bytes of memory that a process and all below it hold."""
    children: dict[int, list[int]] = {}
    held: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(entry.name))
            held[int(entry.name)] = int(fields[21]) * 4096
    total, todo = 0, [pid]
    while todo:
        now = todo.pop()
        total += held.get(now, 0)
        todo += children.get(now, [])
    return total
