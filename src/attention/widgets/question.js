// A question of the book in a notebook: its text stands above, in Markdown; here are its inputs.
import { element, startQuestion } from "./shared.js";

function render({ model, el }) {
  const { kind, title, options, said, told, hints, figure, style, ...asked } = model.get("asked");
  const place = element("div", { className: `explorer question ${kind}`, role: "group",
    ariaLabel: title, "data-lm-suppress-shortcuts": "true" }); // JupyterLab's keys stay outside
  place.dataset.question = JSON.stringify(asked);
  if (options) {
    const list = element("ul", {}, ...options.map((innerHTML) => element("li", { innerHTML })));
    const box = element("div", { className: "question-options" }, list);
    box.dataset.said = JSON.stringify(said ?? []);
    place.append(box);
  }
  if (figure) {
    place.append(element("div", { className: "question-figure", style, innerHTML: figure }));
  }
  const answer = element("details", { className: "question-answer" });
  answer.innerHTML = `<summary>Answer</summary>${told}`;
  for (const hint of hints ?? []) {
    const box = element("div", { className: "question-hint", innerHTML: hint.told });
    box.dataset.wrong = JSON.stringify(hint.wrong);
    answer.append(box);
  }
  place.append(answer);
  place.addEventListener("answered", ({ detail }) => {
    model.set("got", detail.got);
    model.set("given", detail.given);
    model.save_changes();
  });
  place.addEventListener("keydown", (event) => { // JupyterLab takes Enter from a form
    if (event.key !== "Enter" || !event.target.matches("input")) return;
    event.preventDefault();
    event.target.form.requestSubmit();
  });
  el.append(place);
  startQuestion(place);
  return () => place.remove();
}

export default { render };
