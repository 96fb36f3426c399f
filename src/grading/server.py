"""Inside the sandbox: run the cells of a submission, then answer calls of its functions.

Started as a script. It reads messages from standard input and answers on standard output, both
moved out of the way before a student's code runs. Nothing here is trusted by the other side.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import linecache
import os
import re
import resource
import sys
import traceback
import types
from typing import Any

HIDDEN = ("attention.checks", "attention.figures", "attention.plots", "attention.widgets",
          "matplotlib", "ipywidgets", "IPython", "anywidget", "google.colab")  # fmt: skip


class Nothing:
    """Stands for what a grader does not need, pictures and checks: anything goes, nothing comes."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, key: Any) -> Any:
        return self

    def __iter__(self) -> Any:
        return iter((self, self))

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *args: Any) -> None:
        pass


class Without(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if any(name == x or name.startswith(x + ".") for x in HIDDEN):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> Any:
        module = types.ModuleType(spec.name)
        module.__getattr__ = Nothing().__getattr__  # type: ignore[method-assign]
        return module

    def exec_module(self, module: Any) -> None:
        pass


def limits(memory: int, files: int, processes: int, cpu: int, size: int) -> None:
    """What this process and its children may take from here on; they cannot raise it again."""
    with open("/proc/self/statm") as statm:
        mapped = int(statm.read().split()[0]) * resource.getpagesize()
    wanted = {
        "AS": mapped + memory, "DATA": mapped + memory, "NOFILE": files, "NPROC": processes,
        "CPU": cpu, "FSIZE": size, "CORE": 0, "MEMLOCK": 0, "MSGQUEUE": 0,
    }  # fmt: skip
    for name, most in wanted.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))


def main() -> None:
    sys.meta_path.insert(0, Without())
    import torch
    import wire  # pyright: ignore[reportMissingImports]  # lies beside this file in the sandbox
    from torch.overrides import TorchFunctionMode

    torch.set_num_threads(1)
    read, write = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    head, _ = wire.receive(read)
    limits(**head["limits"])
    space: dict[str, Any] = {"__name__": "__main__"}
    graphs: dict[int, Any] = {}
    leaves: list[Any] = []  # the arguments that want a gradient
    models: list[Any] = []
    here: list[bytes] = []  # the arrays of the call

    class Trace(TorchFunctionMode):
        """Note which finished functions a call uses, and the shapes that it makes."""

        def __init__(self) -> None:
            super().__init__()
            self.names: set[str] = set()
            self.shapes: set[tuple[int, ...]] = set()
            self.called: set[str] = set()

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.names.add(getattr(func, "__name__", ""))
            result = func(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor) and result.is_floating_point():
                self.shapes.add(tuple(result.shape))
            return result

        def watch(self, frame: Any, event: str, function: Any) -> None:
            if event == "call":
                module = str(frame.f_globals.get("__name__"))
                if module.startswith(("attention.", "torch.")):
                    self.called.add(f"{module}.{frame.f_code.co_name}")
            elif event == "c_call":
                self.called.add(str(getattr(function, "__name__", "")))

    class Elsewhere(Exception):
        """What a function of the other side raised."""

    def plain(value: Any) -> Any:
        """The other side's stand-in for what is no plain value."""
        if isinstance(value, torch.Tensor):
            graphs[len(graphs)] = value
            return {"graph": len(graphs) - 1}
        return {"other": type(value).__name__[:60]}

    def argument(made: dict[str, Any]) -> Any:
        if "grad" in made:
            leaves.append(made["of"].requires_grad_())
            return leaves[-1].clone()
        if "module" in made:
            parts = [getattr(torch.nn, kind)(*sizes) for kind, *sizes in made["module"]]
            models.append(torch.nn.Sequential(*parts))
            state = wire.unpack(made["state"], here, argument)
            for p, (value, slope) in zip(models[-1].parameters(), state, strict=True):
                p.data, p.grad = value, slope
            return models[-1]
        if "sgd" in made:
            return torch.optim.SGD(models[-1].parameters(), lr=made["sgd"])

        def elsewhere(*args: Any) -> Any:
            blobs: list[bytes] = []
            told = [wire.pack(x, blobs, plain) for x in args]
            wire.send(write, {"callback": made["function"], "args": told}, blobs)
            head, blobs = wire.receive(read)
            if "raised" in head:
                raise Elsewhere(head["raised"])
            return wire.unpack(head["value"], blobs, argument)

        return elsewhere

    def told(error: BaseException) -> dict[str, Any]:
        """An error as a sentence, with the student's own line."""
        lines = [
            f
            for f in traceback.extract_tb(error.__traceback__)
            if f.filename.startswith("<answer ")
        ]
        try:
            text = str(error)[:500]
        except BaseException:  # noqa: B902  a student's class may do anything here
            text = "(its message cannot be shown)"
        if isinstance(error, SystemExit):
            text = "sys.exit() ends the whole program; return a value instead"
        place = f" (in your line: {(lines[-1].line or '')[:120]})" if lines else ""
        chain: BaseException | None = error
        raised = None
        while chain is not None and raised is None:
            raised = chain.args[0] if isinstance(chain, Elsewhere) and chain.args else None
            chain = chain.__context__
        return {"error": type(error).__name__[:60], "text": text + place, "raised": raised}

    def run(head: dict[str, Any], blobs: list[bytes]) -> dict[str, Any]:
        source = head["source"]
        try:
            compile(source, "<answer>", "exec")
        except SyntaxError:  # %magic and !command are for notebooks only
            source = re.sub(r"(?m)^([ \t]*)[%!].*$", r"\1pass", source)
        name = f"<answer {head['id']}>"
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        exec(compile(source, name, "exec"), space)
        return {"done": True}

    def after(value: Any) -> Any:
        """An argument as the call has left it, None for what does not change."""
        if isinstance(value, torch.nn.Module):
            return [(p.detach(), p.grad) for p in value.parameters()]
        return None if callable(value) else value

    def call(head: dict[str, Any], blobs: list[bytes]) -> dict[str, Any]:
        graphs.clear()
        leaves.clear()
        models.clear()
        here[:] = blobs
        function = space[head["name"]]
        args = [wire.unpack(x, blobs, argument) for x in head["args"]]
        kwargs = {k: wire.unpack(x, blobs, argument) for k, x in head["kwargs"].items()}
        torch.manual_seed(0)
        trace = Trace()
        with trace:
            sys.setprofile(trace.watch)
            try:
                value = function(*args, **kwargs)
            finally:
                sys.setprofile(None)
        blobs.clear()
        code = getattr(function, "__code__", None)
        return {
            "value": wire.pack(value, blobs, plain),
            "args": [wire.pack(after(x), blobs, lambda _: None) for x in args],
            "names": sorted(trace.names)[:500],
            "shapes": sorted(trace.shapes, key=str)[:500],
            "called": sorted(trace.called)[:2000],
            "code": list(getattr(code, "co_names", ())),
        }  # fmt: skip

    def look(head: dict[str, Any], blobs: list[bytes]) -> dict[str, Any]:
        found = space.get(head["name"])
        return {"callable": callable(found), "type": type(found).__name__[:60]}

    def back(head: dict[str, Any], blobs: list[bytes]) -> dict[str, Any]:
        given = wire.unpack(head["slope"], blobs, argument)
        found = torch.autograd.grad(
            graphs[head["graph"]], leaves, given, retain_graph=True, allow_unused=True
        )
        blobs.clear()
        return {"value": wire.pack(list(found), blobs, plain)}

    def warm(head: dict[str, Any], blobs: list[bytes]) -> dict[str, Any]:
        torch.optim.SGD([torch.zeros(1)], lr=1.0)
        return {"done": True}

    tasks = {"warm": warm, "run": run, "call": call, "look": look, "back": back}
    wire.send(write, {"ready": True}, [])
    while True:
        head, blobs = wire.receive(read)
        try:
            answer = tasks[head["task"]](head, blobs)
        except BaseException as error:  # noqa: B902  whatever a student's code raises
            blobs, answer = [], told(error)
        try:
            wire.send(write, answer | {"id": head["id"]}, blobs)
        except wire.Ended:
            return
        except wire.Broken as error:
            wire.send(write, {"id": head["id"], "error": "Size", "text": str(error)}, [])


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # wire, and the package
    with contextlib.suppress(Exception):
        main()
