"""Which tests share a process."""

import pytest
from conftest import group


@pytest.mark.parametrize(
    ("test", "where"),
    [
        ("tests/test_build.py::test_a_second_build_executes_nothing", "tests/test_build.py"),
        ("tests/test_notebooks.py::test_notebook_runs_in_colab[qkv]", "colab"),
        ("tests/test_notebooks.py::test_pip_would_change_nothing_in_colab", "colab"),
    ],
)
def test_tests_that_share_something_share_a_process(test, where):
    assert group(test) == where


def test_notebooks_on_current_versions_share_nothing():
    a, b = (f"tests/test_notebooks.py::test_notebook_runs_on_current_versions[{x}]" for x in "ab")
    assert len({group(a), group(b), "tests/test_notebooks.py"}) == 3
