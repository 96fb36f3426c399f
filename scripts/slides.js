// A deck of slides in the browser: one slide at a time, scaled to the window, its text made smaller
// or its explorer larger where the slide's size asks for it. Keys: arrows, Page Up and Down (also in
// an explorer), space, Home, End; A shows all slides, D changes between light and dark, F fills the
// screen. On a phone the slides stay under one another.
(() => {
  const root = document.documentElement;
  const body = document.body;
  const stage = document.querySelector("main");
  const slides = [...document.querySelectorAll(".slide")];
  const narrow = matchMedia("(max-width: 700px)");
  let now = 0;

  const kept = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const known = ["light", "dark"].includes(kept()) ? kept() : null;
  root.dataset.theme = known ?? (dark.matches ? "dark" : "light");

  // A slide's content is measured at its own size, then scaled to the room that it has. An explorer
  // that is too high for it gets two columns.
  function fit(slide) {
    const box = slide.querySelector(".fit");
    const explorer = slide.querySelector(".explorer-place");
    box.style.zoom = "";
    explorer?.classList.remove("wide");
    const parts = [...box.children].filter((part) => part.localName !== "figure");
    if (narrow.matches || !parts.length) return;
    const scale = slide.getBoundingClientRect().width / slide.offsetWidth || 1;
    const end = (part, side) => part.getBoundingClientRect()[side] / scale;
    const high = end(slide.querySelector(".slide-foot"), "top") - end(slide.querySelector("h1, h2"), "bottom") - 24;
    const wide = slide.clientWidth - 128;
    const zoom = () => Math.min(
      explorer ? 1.6 : 1,
      high / (end(parts.at(-1), "bottom") - end(parts[0], "top")),
      ...[...parts, ...box.querySelectorAll("math, table, pre")].map((part) =>
        wide / Math.max(part.scrollWidth || 0, part.getBoundingClientRect().width / scale)),
    );
    let best = zoom();
    if (explorer && best < 0.8) {
      explorer.classList.add("wide");
      const columns = zoom();
      if (columns > best) best = columns;
      else explorer.classList.remove("wide");
    }
    if (Math.abs(best - 1) > 0.01) box.style.zoom = best.toFixed(3);
  }

  function size() {
    const mode = body.classList.contains("all") ? "all" : narrow.matches ? "" : "one";
    body.classList.toggle("one", mode === "one");
    stage.style.zoom = mode === "one" ? Math.min(innerWidth / 1280, innerHeight / 720) : "";
    slides.forEach(fit);
  }

  function show(k, focus = true) {
    now = Math.min(Math.max(k, 0), slides.length - 1);
    slides.forEach((slide, i) => slide.classList.toggle("now", i === now));
    counter.textContent = `${now + 1} / ${slides.length}`;
    history.replaceState(null, "", `#${now + 1}`);
    if (narrow.matches || body.classList.contains("all")) slides[now].scrollIntoView();
    if (focus) slides[now].focus({ preventScroll: true });
  }
  function all(on) {
    body.classList.toggle("all", on);
    size();
    show(now);
  }
  function theme() {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  }

  const make = (tag, properties, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };
  const counter = make("span", { className: "deck-count" });
  const bar = make("nav", { className: "deck-bar", ariaLabel: "Slides" });
  for (const [sign, title, act] of [
    ["‹", "Slide before (arrow left)", () => show(now - 1)],
    [counter, "", null],
    ["›", "Next slide (arrow right)", () => show(now + 1)],
    ["▦", "All slides (A)", () => all(!body.classList.contains("all"))],
    ["◐", "Light or dark (D)", theme],
    ["Print", "A page for each slide", () => print()],
  ]) {
    bar.append(act ? make("button", { type: "button", title, ariaLabel: title, onclick: act }, sign) : sign);
  }
  body.append(bar);

  const keys = {
    ArrowRight: 1, ArrowDown: 1, " ": 1, PageDown: 1, ArrowLeft: -1, ArrowUp: -1, PageUp: -1,
    Home: -Infinity, End: Infinity,
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = event.target.closest?.("input, select, textarea, button, summary, a, [tabindex='0']");
    if (event.key === "Escape") {
      if (body.classList.contains("all")) all(false);
      else slides[now].focus({ preventScroll: true });
      return;
    }
    if (at && !event.key.startsWith("Page")) return; // the explorer's own keys
    const key = event.key.toLowerCase();
    if (event.key in keys) show(now + keys[event.key] * (event.key === " " && event.shiftKey ? -1 : 1));
    else if (key === "a") all(!body.classList.contains("all"));
    else if (key === "d") theme();
    else if (key === "f") (document.fullscreenElement ? document.exitFullscreen() : root.requestFullscreen()).catch(() => {});
    else return;
    event.preventDefault();
  });
  stage.addEventListener("click", (event) => {
    if (!body.classList.contains("all")) return;
    event.preventDefault();
    now = Math.max(0, slides.indexOf(event.target.closest(".slide")));
    all(false);
  });

  // Votes by hands: how many are for each option, shown beside the answer.
  slides.forEach((slide, k) => {
    const options = slide.matches(".is-poll:not(.is-answer)") ? [...slide.querySelectorAll(".options > li")] : [];
    const told = [...(slides[k + 1]?.querySelectorAll(".options > li") ?? [])];
    const inputs = options.map((option, i) => {
      const label = `Hands for ${String.fromCharCode(65 + i)}`;
      const input = make("input", { type: "number", min: 0, className: "deck-hands", placeholder: "hands", ariaLabel: label });
      option.append(input);
      input.addEventListener("input", () => {
        const votes = inputs.map((one) => Math.max(0, Number(one.value) || 0));
        const sum = votes.reduce((a, b) => a + b, 0);
        told.forEach((row, j) => {
          row.querySelector(".deck-share")?.remove();
          if (!sum) return;
          const share = make("span", { className: "deck-share" }, `${votes[j]}`);
          share.style.setProperty("--part", votes[j] / sum);
          row.append(share);
        });
      });
      return input;
    });
  });

  size();
  show((parseInt(location.hash.slice(1), 10) || 1) - 1, false);
  addEventListener("resize", size);
  addEventListener("beforeprint", () => { stage.style.zoom = ""; });
  addEventListener("afterprint", size);
  addEventListener("hashchange", () => show((parseInt(location.hash.slice(1), 10) || 1) - 1));
  document.fonts.ready.then(size);
  const grown = new ResizeObserver((entries) =>
    entries.forEach(({ target }) => fit(target.closest(".slide")))); // an explorer started, or says more
  for (const place of document.querySelectorAll(".slide .explorer-place")) grown.observe(place);
})();
