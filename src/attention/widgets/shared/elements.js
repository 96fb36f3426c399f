// Elements of a page, and the frame of an explorer: its box, its sentence, its state.

export const uid = () => `x${Math.random().toString(36).slice(2, 9)}`;

function dress(node, props, children) {
  for (const [key, value] of Object.entries(props)) {
    if (key === "on") for (const [type, f] of Object.entries(value)) node.addEventListener(type, f);
    else if (key === "text") node.textContent = value;
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value != null) node.setAttribute(key, value);
  }
  node.append(...children);
  // JupyterLab would otherwise take the arrow keys from whatever has the focus.
  if (props.type || "tabindex" in props) node.setAttribute("data-lm-suppress-shortcuts", "true");
  return node;
}

export const make = (tag, props = {}, ...children) =>
  dress(document.createElement(tag), props, children);

export const svg = (tag, props = {}, ...children) =>
  dress(document.createElementNS("http://www.w3.org/2000/svg", tag), props, children);

// Writes only what changed: the browser lays out nothing for nothing.
export const write = (node, text) => { if (node.textContent !== text) node.textContent = text; };

export const attribute = (node, name, value) => {
  if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
};

// A part of an explorer in a box that is told its height: what moves inside is laid out without the
// page around it, which may hold ten thousand elements. (Browsers do not do so around a select.)
function boxed(node, cleanups) {
  const box = make("div", { class: "apart" }, node);
  const watcher = new ResizeObserver(([entry]) => {
    box.style.containIntrinsicBlockSize = `${entry.borderBoxSize[0].blockSize}px`;
    box.classList.add("told");
  });
  watcher.observe(node);
  const part = make("div", { class: "part" }, box);
  const hider = new MutationObserver(() => { part.hidden = node.hidden; });
  hider.observe(node, { attributeFilter: ["hidden"] });
  cleanups.push(() => watcher.disconnect(), () => hider.disconnect());
  part.hidden = node.hidden;
  return part;
}

// The frame of an explorer: its box, its sentence, its state. `start(draw, names)` draws now and
// on each change of one of the named traits, and returns the clean-up.
export function explorer({ model, el, title, name }) {
  const status = make("p", { class: "say", role: "status", "aria-live": "polite" });
  const body = make("div", { class: "inside" });
  const root = make("div", { class: `explorer ex-${name}`, role: "group", "aria-label": title },
    body, status);
  const cleanups = [];
  let batching = false;
  let timer = 0;
  let said = "";
  let repaint = () => {};
  el.append(root);
  cleanups.push(onTheme(() => {
    for (const grid of root.querySelectorAll(".heat")) grid.dispatchEvent(new Event("theme"));
  }));
  return {
    root, body,
    get: (key) => model.get(key),
    add: (...nodes) => body.append(...nodes.map((node) =>
      (node.querySelector("select") ? node : boxed(node, cleanups)))),
    onCleanup: (f) => cleanups.push(f),
    set(state) {
      batching = true;
      for (const [key, value] of Object.entries(state)) model.set(key, value);
      batching = false;
      repaint();
      model.save_changes();
    },
    // Said in words, once the hand rests.
    say(text) {
      clearTimeout(timer);
      if (text === said) return;
      const tell = () => status.replaceChildren(...maths((said = text)).childNodes);
      if (!said) tell();
      else timer = setTimeout(tell, 200);
    },
    start(draw, names) {
      repaint = draw;
      const changed = () => { if (!batching) draw(); };
      for (const key of names) model.on(`change:${key}`, changed);
      draw();
      return () => {
        clearTimeout(timer);
        for (const key of names) model.off(`change:${key}`, changed);
        for (const f of cleanups) f();
        root.remove();
      };
    },
  };
}

// Words with subscripts: "T = √d_k" -> T = √d<sub>k</sub>.
// A word such as new_york stays as it is.
export const maths = (text) => make("span", {},
  ...text.split(/(\b[A-Za-z])_(model|ff|\w)\b/).map((part, i) =>
    (i % 3 === 2 ? make("sub", { text: part }) : part)));

// The themes around us: the document's own switch, Jupyter's, Colab's, VS Code's, the system's.
export function onTheme(f) {
  const watcher = new MutationObserver(f);
  const options = { attributes: true, attributeFilter: ["data-theme", "theme", "class",
    "data-jp-theme-light", "data-vscode-theme-kind"] };
  watcher.observe(document.documentElement, options);
  if (document.body) watcher.observe(document.body, options);
  const queries = ["(prefers-color-scheme: dark)", "print"].map((query) => matchMedia(query));
  for (const query of queries) query.addEventListener("change", f);
  return () => {
    watcher.disconnect();
    for (const query of queries) query.removeEventListener("change", f);
  };
}
