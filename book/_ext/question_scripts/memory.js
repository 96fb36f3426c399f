// What the reader has answered and read, kept in this browser and nowhere else; and when a card
// returns. The state is JSON that a person can read: of each card, the page it is from and every
// answer with its time. All that is shown is worked out from that.
(() => {
  const KEY = "attention-book";
  const DAYS = [1, 3, 7, 16, 35, 80, 180]; // a card that is known goes one step on each time
  const GOT = ["right", "partly", "wrong"];
  const { make, start } = window.attentionQuestions;

  // the state, and what is none

  const bare = (object) => Object.assign(Object.create(null), object);
  const empty = () => ({ book: "attention", version: 1, cards: bare(), read: bare(), exercises: bare() });
  const isMap = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
  const isTime = (value) => typeof value === "string" && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value)
    && !Number.isNaN(Date.parse(value));
  const isPage = (value) => typeof value === "string" && /^[\w-]+(\/[\w-]+)*$/.test(value);

  // A state from its text; whatever is not one throws a sentence.
  function parse(text) {
    let found;
    try {
      found = JSON.parse(text);
    } catch {
      throw Error("It is not JSON: it is cut off or damaged.");
    }
    if (!isMap(found) || found.book !== "attention") throw Error("It is not a state of this book.");
    if (found.version !== 1) throw Error(`It is of version ${found.version}; this book reads version 1.`);
    const each = (part, good) => {
      if (!isMap(found[part])) throw Error(`Its part "${part}" is missing or damaged.`);
      for (const [name, value] of Object.entries(found[part])) {
        if (!/^[\w/.:-]+$/.test(name) || !good(value)) throw Error(`Its entry "${name}" in "${part}" is damaged.`);
      }
      return bare(found[part]);
    };
    return {
      ...empty(),
      cards: each("cards", (card) => isMap(card) && isPage(card.page) && Array.isArray(card.log)
        && card.log.every((one) => Array.isArray(one) && isTime(one[0]) && GOT.includes(one[1]))),
      read: each("read", (page) => isMap(page) && Number.isInteger(page.of) && isMap(page.sections)
        && Object.values(page.sections).every(isTime)),
      exercises: each("exercises", (one) => Array.isArray(one) && isTime(one[0]) && typeof one[1] === "boolean"),
    };
  }

  // Both states in one: no answer of either is lost, and of an exercise's marks the newer counts. An
  // answer of the same time is the same answer; `b` may have been thought better of.
  function merge(a, b) {
    const made = empty();
    for (const { cards, read, exercises } of [a, b]) {
      for (const [name, { page, log }] of Object.entries(cards)) {
        const all = new Map([...(made.cards[name]?.log ?? []), ...log].map((one) => [one[0], one]));
        made.cards[name] = { page, log: [...all.values()].sort((x, y) => (x[0] < y[0] ? -1 : 1)) };
      }
      for (const [name, { of, sections }] of Object.entries(read)) {
        made.read[name] = { of, sections: { ...made.read[name]?.sections, ...sections } };
      }
      for (const [name, one] of Object.entries(exercises)) {
        if (!(made.exercises[name]?.[0] > one[0])) made.exercises[name] = one;
      }
    }
    return made;
  }

  // when a card returns

  const day = (time) => Math.floor(time / 864e5 - new Date(time).getTimezoneOffset() / 1440);
  const today = () => day(Date.now());
  const date = (on) => new Date((on + 0.5) * 864e5).toLocaleDateString("en-GB",
    { day: "numeric", month: "long", year: "numeric", timeZone: "UTC" });
  function due({ log }) {
    let step = 0;
    let next = -Infinity;
    for (const [at, got] of log) {
      const on = day(Date.parse(at));
      if (got === "wrong") step = 0;
      else if (on < next) continue; // known before its time: that does not put it off
      else if (got === "right") step = Math.min(step + 1, DAYS.length - 1);
      next = on + DAYS[step];
    }
    return next;
  }
  const dueCards = (state) => Object.entries(state.cards)
    .map(([name, card]) => ({ name, page: card.page, due: due(card) }))
    .sort((a, b) => a.due - b.due || (a.name < b.name ? -1 : 1));

  // the store

  let mine = empty(); // what this window has added
  let trouble = ""; // what was put aside, or why nothing is kept, in a sentence
  let stuck = false; // then it is kept in this window only
  function unkept(why) {
    trouble ||= `${why}, so the book forgets your answers when you close this page.`;
    stuck = true;
  }
  function stored() {
    let text;
    try {
      text = localStorage.getItem(KEY);
    } catch {
      unkept("This browser keeps nothing for this page");
    }
    if (!text) return empty();
    try {
      return parse(text);
    } catch (error) {
      try {
        localStorage.setItem(`${KEY}-aside-${new Date().toISOString()}`, text);
        localStorage.removeItem(KEY);
        trouble = `What was kept here could not be read. ${error.message} It was put aside.`;
      } catch {
        unkept("What is kept here cannot be read, and there is no room to put it aside");
      }
      return empty();
    }
  }
  const read = () => (stuck ? merge(stored(), mine) : stored());
  function write(state) {
    if (stuck) return;
    try {
      localStorage.setItem(KEY, JSON.stringify(state));
    } catch {
      unkept("This browser keeps no more for this page");
    }
  }
  function add(change) {
    const added = { ...empty(), ...change };
    mine = merge(mine, added);
    write(merge(read(), added));
    show();
  }
  const record = (name, page, got, at = new Date().toISOString()) =>
    add({ cards: { [name]: { page, log: [[at, got]] } } });
  function erase() {
    mine = empty();
    try {
      Object.keys(localStorage).filter((key) => key.startsWith(KEY)).forEach((key) => localStorage.removeItem(key));
    } catch { /* there was nothing */ }
    show();
  }
  addEventListener("storage", ({ key, newValue }) => { // another window has written
    if (key !== null && key !== KEY) return;
    if (newValue === null) mine = empty(); // and erased
    else {
      const there = read();
      const both = merge(there, mine);
      if (JSON.stringify(merge(there, empty())) !== JSON.stringify(both)) write(both);
    }
    show();
  });

  // this page

  const root = new URL(document.documentElement.dataset.content_root || "./", location.href);
  const page = location.pathname.slice(root.pathname.length).replace(/\.html$/, "");
  const watchers = [];
  const show = () => { const state = read(); watchers.forEach((watch) => watch(state)); };
  addEventListener("answered", ({ detail, target }) => {
    record(detail.name, target.closest("[data-page]")?.dataset.page ?? page, detail.got, detail.at);
  });

  const home = document.currentScript.src;
  const fetched = new Map();
  function fetchScript(name) {
    if (!fetched.has(name)) {
      fetched.set(name, new Promise((done) => {
        const script = make("script", { src: new URL(name, home).href, onload: done, onerror: done });
        document.head.append(script);
      }));
    }
    return fetched.get(name);
  }
  // The card as an element that takes an answer, or null if the book has it no more.
  async function card(name, from) {
    await fetchScript(`cards-${from.replaceAll("/", "-")}.js`);
    const { title, cards } = window.attentionCards?.[from] ?? { cards: {} };
    if (!Object.hasOwn(cards, name)) return null;
    const place = make("div", { className: "card-place", innerHTML: cards[name] });
    place.dataset.page = from;
    const head = place.querySelector(".admonition-title").firstChild; // its number says nothing here
    head.data = head.data?.replace(/^[A-Z][\w ]+: /, "");
    const link = make("a", { href: new URL(`${from}.html#${name}`, root).href }, title);
    place.append(make("p", { className: "card-source" }, "From: ", link));
    start(place.querySelector("[data-question]"));
    return place;
  }
  window.attentionMemory = {
    DAYS, KEY, parse, merge, due, dueCards, today, date, read, record, add, erase, card, fetchScript, make,
    watch(f) { watchers.push(f); f(read()); },
    trouble: () => trouble,
  };

  // when a question returns, beside it

  for (const place of document.querySelectorAll("[data-question]")) {
    const { name } = JSON.parse(place.dataset.question);
    const line = make("p", { className: "card-source" });
    place.append(line);
    watchers.push(({ cards: { [name]: known } }) => {
      const on = known && due(known);
      line.textContent = !known ? "" : on > today() ? `It returns in Review on ${date(on)}.`
        : "It waits for you in Review.";
    });
  }

  // three from last time

  const review = document.querySelector(".review");
  const heading = document.querySelector(".bd-article h1");
  const waiting = heading && !review
    ? dueCards(read()).filter((one) => one.due <= today() && one.page !== page).slice(0, 3) : [];
  if (waiting.length) {
    const title = make("summary", {}, `Questions from last time: ${waiting.length}`);
    const box = make("details", { className: "last-time" }, title);
    box.addEventListener("toggle", async () => {
      const places = await Promise.all(waiting.map((one) => card(one.name, one.page)));
      box.append(...places.filter(Boolean));
      if (!places.some(Boolean)) box.append("The book has these questions no more.");
    }, { once: true });
    heading.after(box);
  }

  // progress: quiet marks in the contents

  const sections = [...document.querySelectorAll(".bd-toc-nav a[href^='#']")].flatMap((link) => {
    if (review) return []; // no chapter
    const section = document.getElementById(decodeURIComponent(link.hash.slice(1)));
    return section && section.closest(".bd-article") ? [{ link, section }] : [];
  });
  function mark(link, sign, words) {
    let place = link.querySelector(".progress-mark");
    if (!sign) return void place?.remove();
    if (!place) link.append(place = make("span", { className: "progress-mark" }));
    const hidden = make("span", { className: "visually-hidden" }, ` (${words})`);
    const seen = make("span", {}, sign);
    seen.ariaHidden = "true";
    place.replaceChildren(seen, hidden);
    place.title = words;
  }
  const boxes = [...document.querySelectorAll(".bd-article .exercise[id]")].map((exercise) => {
    const box = make("input", { type: "checkbox" });
    box.addEventListener("change", () =>
      add({ exercises: { [exercise.id]: [new Date().toISOString(), box.checked] } }));
    const facts = exercise.querySelector(".exercise-facts");
    facts?.append(make("label", { className: "exercise-done" }, box, " done"));
    return { box, exercise };
  });
  watchers.push((state) => {
    const seen = state.read[page]?.sections ?? {};
    for (const { link, section } of sections) {
      const own = boxes.filter(({ exercise }) => section.contains(exercise));
      const done = own.filter(({ exercise }) => state.exercises[exercise.id]?.[1]).length;
      if (done) mark(link, done === own.length ? "✓" : `${done}/${own.length}`, `${done} of ${own.length} exercises done`);
      else mark(link, Object.hasOwn(seen, section.id) && "✓", "read");
    }
    for (const { box, exercise } of boxes) box.checked = Boolean(state.exercises[exercise.id]?.[1]);
    for (const link of document.querySelectorAll(".bd-links a.reference.internal")) {
      const there = link.getAttribute("href") === "#" ? page
        : new URL(link.href).pathname.slice(root.pathname.length).replace(/\.html$/, "");
      const { of = 0, sections: had = {} } = state.read[there] ?? {};
      const count = Object.keys(had).length;
      mark(link, count && (count >= of ? "✓" : "◐"), count >= of ? "read" : `${count} of ${of} sections read`);
    }
  });
  show();

  // A section is read when its end has been in sight for two seconds.
  const ends = new Map(sections.map(({ section }) =>
    [[...section.children].filter((child) => child.localName !== "section").at(-1), section.id]));
  const timers = new Map();
  const sight = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      clearTimeout(timers.get(target));
      if (!isIntersecting || document.hidden) continue;
      timers.set(target, setTimeout(() => {
        sight.unobserve(target);
        const time = { [ends.get(target)]: new Date().toISOString() };
        add({ read: { [page]: { of: sections.length, sections: time } } });
      }, 2000));
    }
  });
  ends.forEach((id, end) => { if (!read().read[page]?.sections[id]) sight.observe(end); });
})();
