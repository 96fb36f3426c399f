"""The sections of the book in reading order, and how another page names one of them."""

from docutils import nodes


def pages(env, numbered=False):
    """The book's pages in its order, the start page first; the numbered chapters only if asked."""
    root = env.config.root_doc
    order = [root, *env.toctree_includes.get(root, [])]
    return [name for name in order if not numbered or env.toc_secnumbers.get(name)]


def titled(node):
    """Whether a node is a section with a heading; an exercise wraps its text in one without."""
    return isinstance(node, nodes.section) and isinstance(node[0], nodes.title)


def sections(env, docnames):
    """(document, section, its own nodes without those of its subsections), in reading order."""
    for docname in docnames:
        for section in env.get_doctree(docname).findall(titled):
            yield docname, section, [child for child in section if not titled(child)]


def place(app, docname, section, home):
    """A link from the page `home` to a section, after the number of its chapter if it has one."""
    uri = app.builder.get_relative_uri(home, docname)
    title = [part.deepcopy() for part in section.next_node(nodes.title)]  # with its formulas
    link = nodes.reference("", "", *title, internal=True, refuri=f"{uri}#{section['ids'][0]}")
    number = app.env.toc_secnumbers.get(docname, {}).get("")
    return [nodes.Text(f"chapter {number[0]}, "), link] if number else [link]
