"""The directive {exercise-table}: every exercise of the book, read from the chapters themselves."""

import importlib
import inspect
import re
from pathlib import Path

from answers import BEGIN
from docutils import nodes
from exercises import facts, needs
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective
from sphinx_exercise.nodes import exercise_enumerable_node, exercise_node, solution_node

HEADER = ["Exercise", "Stars", "Minutes", "Points", "Graded", "Needs"]
VARIES = re.compile(r"\b(?:sized|draw|_draws|_randn?|_random|randint|_layers)\(")


class exercise_table(nodes.General, nodes.Element):  # noqa: N801
    pass


class ExerciseTable(SphinxDirective):
    def run(self):
        self.env.metadata[self.env.docname]["exercise_table"] = "yes"
        return [exercise_table()]


def listed(env):
    """The pages with exercises, in reading order: each with its exercises, and how it is graded."""
    order = [d for d in env.toctree_includes.get(env.config.root_doc, []) if d in env.all_docs]
    for docname in dict.fromkeys([*order, *sorted(env.all_docs)]):
        if "kernelspec" not in env.metadata.get(docname, {}):
            continue
        tree = env.get_doctree(docname)
        source = Path(env.doc2path(docname)).read_text("utf-8")
        own = set(re.findall(r"^own: (ex-\S+)$", source, re.M))
        module = re.search(r"from attention\.checks import (\w+) as check", source)
        graded = {}
        for n in tree.findall(solution_node):
            label, text = n["target_label"], n.astext()
            name = re.search(r"\bcheck\.(\w+)\(", text)
            if BEGIN in text:
                known = module and name and fixed(module[1], name[1])
                graded[label] = "check, fixed inputs" if known else "check"
            else:
                graded[label] = "hand, own numbers" if label in own else "hand"
        found = [
            n
            for n in tree.findall(nodes.Element)
            if isinstance(n, exercise_node | exercise_enumerable_node)
        ]
        if found:
            sections = {i: s for s in tree.findall(nodes.section) for i in s["ids"]}
            yield docname, found, graded, sections


def fixed(module: str, name: str) -> bool:
    """Whether a check has the same inputs for everybody, the grader included."""
    check = getattr(importlib.import_module(f"attention.checks.{module}"), name)
    return not VARIES.search(inspect.getsource(check))


class FillTable(SphinxPostTransform):
    default_priority = 200

    def run(self, **kwargs):
        for place in list(self.document.findall(exercise_table)):
            place.replace_self(self.tables())

    def tables(self):
        builder, env = self.app.builder, self.env
        made = []
        for docname, found, graded, sections in listed(env):
            uri = builder.get_relative_uri(env.docname, docname)
            rows, minutes = [], {True: 0, False: 0}  # of the easier ones: checked or not
            for node in found:
                known = facts(node.get("classes", []))
                numbers = env.toc_fignumbers.get(docname, {}).get("exercise", {})
                number = ".".join(map(str, numbers.get(node["label"], ())))
                subtitle = list(node.children[0].children)[1:]
                link = nodes.reference("", "", internal=True, refuri=f"{uri}#{node['label']}")
                link += nodes.Text(f"{number} " if number else "")
                for part in subtitle:
                    link += [child.deepcopy() for child in part.children]
                stars = known.get("star", 1)
                if stars < 3:
                    minutes[graded.get(node["label"], "hand").startswith("check")] += known.get(
                        "minutes", 0
                    )
                rows.append(
                    [
                        [link, nodes.Text(" "), nodes.literal("", node["label"])],
                        [nodes.Text("★" * stars)],
                        [nodes.Text(str(known.get("minutes", "")))],
                        [nodes.Text(str(known.get("points", stars)))],
                        [nodes.Text(graded.get(node["label"], "hand"))],
                        self.section(docname, uri, node, sections),
                    ]
                )
            name = docname.rsplit("/", 1)[-1]
            title = nodes.paragraph("", "", classes=["exercise-table-title"])
            title += nodes.strong("", env.titles[docname].astext())
            said = f": ★ and ★★ take {sum(minutes.values())} minutes, {minutes[True]} with a check"
            title += [nodes.Text(", named "), nodes.literal("", name), nodes.Text(said)]
            made += [title, table(rows)]
        return made

    def section(self, docname, uri, node, sections):
        """A link to the section that an exercise needs."""
        wanted = needs(node.get("classes", []))
        if wanted not in sections:  # none is named, or it has another title now
            return []
        link = nodes.reference("", "", internal=True, refuri=f"{uri}#{wanted}")
        link += [child.deepcopy() for child in sections[wanted].next_node(nodes.title).children]
        return [link]


def table(rows):
    """A docutils table with the header above."""
    made = nodes.table(classes=["colwidths-auto"])
    group = nodes.tgroup(cols=len(HEADER))
    group += [nodes.colspec(colwidth=1) for _ in HEADER]
    head, body = nodes.thead(), nodes.tbody()
    for part, lines in ((head, [[[nodes.Text(h)] for h in HEADER]]), (body, rows)):
        for line in lines:
            row = nodes.row()
            for column, cell in zip(HEADER, line, strict=True):
                right = ["text-right"] if column in ("Minutes", "Points") else []
                entry = nodes.entry(classes=right)
                entry += nodes.paragraph("", "", *cell)
                row += entry
            part += row
    group += [head, body]
    made += group
    return made


def _outdated(app, env, added, changed, removed):
    """The page with the table is as old as the oldest of the chapters that it lists."""
    if not (added | changed | removed):
        return []
    return [d for d in env.found_docs if env.metadata.get(d, {}).get("exercise_table")]


def setup(app):
    app.add_node(exercise_table)
    app.add_directive("exercise-table", ExerciseTable)
    app.add_post_transform(FillTable)
    app.connect("env-get-outdated", _outdated)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
