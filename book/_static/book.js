// What the theme's own scripts did for this book, without Bootstrap: colours, search box, sidebars,
// the place in the table of contents, and room for notes in the margin.
(() => {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const all = (selector) => [...document.querySelectorAll(selector)];
  const remember = (key, value) => { try { localStorage.setItem(key, value); } catch { /* private */ } };

  function colours(mode) {
    root.dataset.mode = mode;
    root.dataset.theme = mode === "auto" ? (dark.matches ? "dark" : "light") : mode;
    remember("mode", mode);
    remember("theme", root.dataset.theme);
  }
  const known = ["auto", "light", "dark"];
  colours(known.includes(root.dataset.mode) ? root.dataset.mode : "auto");
  dark.addEventListener("change", () => colours(root.dataset.mode));
  for (const button of all(".theme-switch-button")) {
    button.addEventListener("click", () => {
      const order = dark.matches ? ["auto", "light", "dark"] : ["auto", "dark", "light"];
      colours(order[(order.indexOf(root.dataset.mode) + 1) % 3]);
    });
  }

  // The search page has its own field; every other page one that lies over it.
  const over = document.querySelector(".search-button__wrapper");
  const field = document.querySelector("main form.bd-search input") ?? over?.querySelector("input");
  function search() {
    if (over?.contains(field)) over.classList.toggle("show");
    if (document.activeElement === field) field.blur();
    else field.select();
  }
  if (field) {
    for (const button of all(".search-button__button, .search-button__overlay")) {
      button.addEventListener("click", search);
    }
    const mac = /^(Mac|iPhone)/.test(navigator.platform);
    if (mac) for (const key of all(".kbd-shortcut__modifier")) key.textContent = "⌘";
    addEventListener("keydown", (event) => {
      const held = mac ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey;
      if (held && !event.shiftKey && !event.altKey && /^k$/i.test(event.key)) {
        event.preventDefault();
        search();
      } else if (event.key === "Escape" && over?.classList.contains("show")) search();
    }, true);
  }

  for (const side of ["primary", "secondary"]) {
    const box = document.getElementById(`pst-${side}-sidebar-checkbox`);
    const bar = document.querySelector(`.bd-sidebar-${side}`);
    const button = document.querySelector(`.${side}-toggle`);
    if (!box || !bar || !button) continue;
    button.addEventListener("click", () => {
      box.checked = !box.checked;
      if (box.checked) setTimeout(() => bar.querySelector("a, button")?.focus(), 100);
    });
    bar.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      box.checked = false;
      button.focus();
    });
    box.addEventListener("change", () => { if (!box.checked) button.focus(); });
  }

  // The section that is being read is marked in the table of contents.
  const links = new Map(all(".bd-toc-nav a").map((link) =>
    [document.getElementById(decodeURIComponent(link.hash.slice(1))), link]));
  links.delete(null);
  const seen = new Set();
  const spy = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) seen[isIntersecting ? "add" : "delete"](target);
    const here = [...links.keys()].filter((section) => seen.has(section)).at(-1);
    for (const [section, link] of links) {
      const on = section === here || Boolean(here && section.contains(here));
      link.classList.toggle("active", on);
      link.parentElement.classList.toggle("active", on);
    }
  }, { rootMargin: "0px 0px -70%" });
  for (const section of links.keys()) spy.observe(section);

  // The table of contents makes room for what stands in the margin.
  const contents = document.querySelector(".bd-sidebar-secondary");
  const shown = new Set();
  const notes = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) shown[isIntersecting ? "add" : "delete"](target);
    contents.classList.toggle("hide", shown.size > 0);
  }, { rootMargin: "0px 0px -33%" });
  if (contents) for (const note of all(".bd-article :is(.margin, .full-width, .sidebar)")) notes.observe(note);

  const top = document.querySelector(".sbt-scroll-pixel-helper");
  if (top) {
    new IntersectionObserver(([entry]) =>
      document.body.classList.toggle("scrolled", entry.boundingClientRect.y < 0)).observe(top);
  }

  // A term of the glossary: its sentence appears beside it while the pointer rests on it, and on
  // a click, a tap or Enter, which the browser does by itself.
  for (const term of all("button.term")) {
    const note = document.getElementById(term.getAttribute("popovertarget"));
    if (!note?.showPopover) continue;
    let resting;
    note.addEventListener("toggle", ({ newState }) => {
      if (newState !== "open") return;
      const at = term.getBoundingClientRect(), { width, height } = note.getBoundingClientRect();
      const room = document.documentElement.clientWidth - width - 8;
      note.style.left = `${Math.max(8, Math.min(at.left, room))}px`;
      note.style.top = `${at.bottom + height + 12 < innerHeight ? at.bottom + 6 : at.top - height - 6}px`;
    });
    term.addEventListener("pointerenter", ({ pointerType }) => {
      if (pointerType === "mouse") resting = setTimeout(() => note.showPopover(), 300);
    });
    term.addEventListener("pointerleave", () => {
      clearTimeout(resting);
      if (document.activeElement !== term) note.hidePopover();
    });
  }

  addEventListener("keydown", ({ key }) => {
    if (key === "Escape") document.querySelector(".term-note:popover-open")?.hidePopover();
  });

  // Over http a worker keeps what is read (scripts/sw.js); what came before it was there is named.
  const worker = navigator.serviceWorker;
  const at = new URL("../sw.js", document.currentScript.src);
  async function keepReading() {
    await worker.register(at);
    const parts = performance.getEntriesByType("resource").map(({ name }) => name);
    const own = parts.filter((name) => name.startsWith(location.origin) && name !== at.href);
    (await worker.ready).active.postMessage([location.href.split(/[?#]/)[0], ...own]);
  }
  if (worker && location.protocol.startsWith("http")) {
    addEventListener("load", () => setTimeout(() => keepReading().catch(() => {}), 1000));
  }
})();
