// Runs the explorers of a static page: gives each the `model` that a notebook would give it.
(() => {
  const models = new Map();

  // The part of anywidget's model that an explorer uses; nothing leaves the page.
  function createModel(state) {
    const listeners = new Map();
    const values = { ...state };
    const emit = (event, ...args) => (listeners.get(event) ?? []).slice().forEach((f) => f(...args));
    return {
      get: (key) => values[key],
      set(key, value) {
        if (JSON.stringify(values[key]) === JSON.stringify(value)) return;
        values[key] = value;
        emit(`change:${key}`, null, value);
        emit("change");
      },
      save_changes() {},
      on(event, f) { listeners.set(event, [...(listeners.get(event) ?? []), f]); },
      off(event, f) { listeners.set(event, (listeners.get(event) ?? []).filter((g) => f && g !== f)); },
    };
  }

  // more: fetches another file of the explorer's weights, such as "tales_100_weights"; resolves to
  // what is in it, or to nothing.
  const more = (place) => (stem) => {
    const file = place.dataset.weights?.split(" ").find((name) => name.startsWith(`${stem}.js`));
    const there = () => window.attentionExplorers[stem];
    return there() || !file ? Promise.resolve(there()) : fetchWeights(file).then(there);
  };

  function start(place) {
    const { explorer: name, model: id } = place.dataset;
    const state = JSON.parse(place.querySelector("script").textContent);
    if (!models.has(id)) models.set(id, createModel(state));
    const el = document.createElement("div");
    el.className = "explorer-root";
    place.append(el);
    try {
      window.attentionExplorers[name].render({ model: models.get(id), el, more: more(place) });
      place.querySelector(".explorer-still")?.remove();
    } catch (error) {
      el.textContent = `This explorer could not start (${error.message}). The text around it does not depend on it.`;
      console.error(error);
    }
  }

  // A trained model is fetched when its explorer comes near, once however many use it; until it is
  // there, a bar stands under the still picture, and if it does not come, a sentence.
  const home = document.currentScript.src;
  const fetched = new Map();
  function fetchWeights(file) {
    if (!fetched.has(file)) {
      fetched.set(file, new Promise((done) => {
        const script = document.createElement("script");
        script.src = new URL(file, home).href;
        script.onload = done;
        script.onerror = () => { fetched.delete(file); script.remove(); done(); };
        document.head.append(script);
      }));
    }
    return fetched.get(file);
  }
  function approach(place) {
    const file = place.dataset.weights.split(" ")[0];
    const stem = file.split(".")[0];
    const wait = document.createElement("p");
    wait.className = "explorer-wait";
    wait.setAttribute("role", "status");
    wait.append("Loading the model … ", document.createElement("progress"));
    place.append(wait);
    fetchWeights(file).then(() => {
      wait.remove();
      if (window.attentionExplorers[stem]) return start(place);
      const again = document.createElement("button");
      again.type = "button";
      again.textContent = "Try again";
      again.onclick = () => { wait.remove(); approach(place); };
      wait.replaceChildren("The model could not be fetched, so the picture stays as it is. ", again);
      place.append(wait);
    });
  }
  const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      approach(target);
    }
  }, { rootMargin: "400px" });

  // This script stands behind the first explorer (scripts/pack.py), which so starts before the rest
  // of the page is there. On a page that is opened at its top (see explorers.py) the others start
  // one by one while nobody needs the machine, elsewhere all at once: a jump needs their heights.
  function begin(place) {
    for (let on = place; on && !on.matches(".bd-article"); on = on.parentElement) {
      on.classList.add("live");
    }
    if (place.dataset.weights) near.observe(place);
    else start(place);
  }
  const root = document.documentElement;
  const whenIdle = window.requestIdleCallback ?? ((f) => setTimeout(f, 50));
  const first = document.querySelector("[data-explorer]");
  let others = [];
  const beginAll = () => others.splice(0).forEach(begin);
  function beginNext() {
    if (others.length) begin(others.shift());
    if (others.length) whenIdle(beginNext);
  }
  if (first) begin(first);
  addEventListener("DOMContentLoaded", () => {
    others = [...document.querySelectorAll("[data-explorer]")].filter((place) => place !== first);
    if (root.classList.contains("arriving")) whenIdle(beginNext);
    else beginAll();
  });
  addEventListener("hashchange", beginAll);
  addEventListener("beforeprint", beginAll);
  addEventListener("load", beginAll);

  // Once all is in its place, the browser need not draw what is far from the window: each block of
  // the page keeps the height that it had (book.css), until the page gets another width.
  const article = document.querySelector(".bd-article");
  let width = 0;
  let timer = 0;
  const settle = new ResizeObserver(() => {
    if (article.clientWidth === width) return;
    width = article.clientWidth;
    article.classList.remove("settled");
    clearTimeout(timer);
    timer = setTimeout(() => article.classList.add("settled"), 300);
  });

  // A page that is opened at its top (see explorers.py) lays out what is in sight, so that its first
  // explorer answers early, and the other blocks a few at a time while nobody needs the machine.
  function layOut(waiting) {
    for (const block of waiting.splice(0, 20)) block.classList.add("laid");
    if (waiting.length && root.classList.contains("arriving")) return void whenIdle(() => layOut(waiting));
    root.classList.remove("arriving");
    // a line without height has the article's width: what a block does to the height tells nobody
    if (article) settle.observe(article.appendChild(document.createElement("div")));
  }
  addEventListener("hashchange", () => { // a jump needs the true heights of all that it passes
    if (!root.classList.contains("arriving")) return;
    root.classList.remove("arriving");
    document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
  });
  addEventListener("load", async () => {
    await document.fonts.ready;
    const waiting = [...document.querySelectorAll(".bd-article section > :not(section, .live)")];
    whenIdle(() => layOut(waiting));
  });
})();
