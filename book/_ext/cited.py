"""Each work of the bibliography tells which sections of the book cite it, and links to arXiv."""

import re

from docutils import nodes
from sections import pages, place, sections
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform

HOME = "book/bibliography"
PREPRINT = re.compile(r"arXiv:(\d{4}\.\d{4,5})")


def citations(env):
    """For each key of a work, the (document, section) pairs that cite it, in reading order."""
    found = {}
    for docname, section, own in sections(env, pages(env)):
        for node in own:
            for reference in node.findall(addnodes.pending_xref):
                if reference.get("refdomain") == "cite":
                    for key in map(str.strip, reference["reftarget"].split(",")):
                        places = found.setdefault(key, {})
                        places[docname, section["ids"][0]] = section
    return {key: [(d, s) for (d, _), s in places.items()] for key, places in found.items()}


def link_preprint(work):
    """Make the number of a preprint a link."""
    for text in list(work.findall(nodes.Text)):
        if found := PREPRINT.search(text):
            said = str(text)
            link = nodes.reference("", found[0], refuri=f"https://arxiv.org/abs/{found[1]}")
            parts = [nodes.Text(said[: found.start()]), link, nodes.Text(said[found.end() :])]
            text.parent.replace(text, parts)


class TellPlaces(SphinxPostTransform):
    default_priority = 200  # after the bibliography has been written

    def run(self, **kwargs):
        if self.env.docname != HOME:
            return
        keys = {c.citation_id: c.key for c in self.env.get_domain("cite").citations}
        cited = citations(self.env)
        for work in self.document.findall(nodes.citation):
            link_preprint(work)
            said = nodes.paragraph("", "Cited in ", classes=["cited-in"])
            for i, (docname, section) in enumerate(cited[keys[work["ids"][0]]]):
                said += [nodes.Text("; ")] * bool(i)
                said += place(self.app, docname, section, HOME)
            said += nodes.Text(".")
            work += said


def _outdated(app, env, added, changed, removed):
    """The page tells of all others."""
    return [HOME] if (added | changed | removed) and HOME in env.found_docs else []


def setup(app):
    app.add_post_transform(TellPlaces)
    app.connect("env-get-outdated", _outdated)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
