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

  function start(place) {
    const { explorer: name, model: id } = place.dataset;
    const state = JSON.parse(place.querySelector("script").textContent);
    if (!models.has(id)) models.set(id, createModel(state));
    const el = document.createElement("div");
    el.className = "explorer-root";
    place.append(el);
    try {
      window.attentionExplorers[name].render({ model: models.get(id), el });
      place.querySelector(".explorer-still")?.remove();
    } catch (error) {
      el.textContent = `This explorer could not start (${error.message}). The text around it does not depend on it.`;
      console.error(error);
    }
  }

  // A trained model is fetched when its explorer comes near, once however many use it; until then
  // the still picture stands there.
  const home = document.currentScript.src;
  const fetched = new Map();
  function fetchWeights(file) {
    if (!fetched.has(file)) {
      fetched.set(file, new Promise((done) => {
        const script = document.createElement("script");
        script.src = new URL(file, home).href;
        script.onload = script.onerror = done;
        document.head.append(script);
      }));
    }
    return fetched.get(file);
  }
  const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      fetchWeights(target.dataset.weights).then(() => start(target));
    }
  }, { rootMargin: "400px" });

  for (const place of document.querySelectorAll("[data-explorer]")) {
    for (let on = place; on && !on.matches(".bd-article"); on = on.parentElement) {
      on.classList.add("live");
    }
    if (place.dataset.weights) near.observe(place);
    else start(place);
  }

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
  const root = document.documentElement;
  const whenIdle = window.requestIdleCallback ?? ((f) => setTimeout(f, 50));
  const waiting = [...document.querySelectorAll(".bd-article section > :not(section, .live)")];
  function layOut() {
    for (const block of waiting.splice(0, 20)) block.classList.add("laid");
    if (waiting.length && root.classList.contains("arriving")) return void whenIdle(layOut);
    root.classList.remove("arriving");
    if (article) settle.observe(article);
  }
  addEventListener("hashchange", () => { // a jump needs the true heights of all that it passes
    if (!root.classList.contains("arriving")) return;
    root.classList.remove("arriving");
    document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
  });
  addEventListener("load", () => document.fonts.ready.then(() => whenIdle(layOut)));
})();
