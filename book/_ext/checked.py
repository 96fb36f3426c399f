"""The role {checked}: a number of book/checked.json, which scripts/checked.py counts.

{checked}`tests.all` is the number of tests, {checked}`day` the day of the count.
"""

import json
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxRole

RECORD = Path(__file__).parents[1] / "checked.json"


class Checked(SphinxRole):
    def run(self):
        self.env.note_dependency(str(RECORD))
        value = json.loads(RECORD.read_text("utf-8"))
        try:
            for key in self.text.split("."):
                value = value[key]
        except (KeyError, TypeError):
            message = self.inliner.reporter.error(f"checked.json has no number {self.text}")
            return [], [message]
        return [nodes.Text(f"{value:,}" if isinstance(value, int) else str(value))], []


def setup(app):
    app.add_role("checked", Checked())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
