"""See to it that bubblewrap, the sandbox of the grader, is here: else install the package."""

import os
import shutil
import subprocess
import sys


def main() -> int:
    if not shutil.which("bwrap") and shutil.which("apt-get") and os.geteuid() == 0:
        print("Installing Debian's bubblewrap for the grader ...", flush=True)
        env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        for words in (["update", "-qq"], ["install", "-y", "-qq", "bubblewrap"]):
            subprocess.run(["apt-get", *words], stdout=subprocess.DEVNULL, env=env)
    if shutil.which("bwrap"):
        return 0
    print(
        "Grading needs bubblewrap (on Debian and Ubuntu `apt install bubblewrap`), or Docker and "
        "SANDBOX=docker:IMAGE.",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
