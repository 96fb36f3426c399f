"""Grade what students hand in: their code in a sandbox, everything that judges it outside.

    python -m grading SUBMISSIONS         # a folder; writes grades/
    python -m grading one scaling.ipynb   # a single notebook, to the terminal

The driver (this process) holds the inputs, the checks and the book's answers. A student's code
runs in a sandbox, in a process that is handed arguments and hands back plain arrays.
"""
