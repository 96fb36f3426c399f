// Keeps what was read, so that it opens without a connection. build.py writes it to the site's root
// with a version, the hash of all that the site holds; from a folder there is no such thing.
const VERSION = "{version}";
const CACHE = `attention-${VERSION}`;
const PAGE = /(\/|\.html)$/;
const PART = /(?:src|href)="([^"#:]+\.(?:css|js|png|svg)(?:\?[^"#]*)?)"/g;
const IN_SHEET = /url\("?([^":)]+\.woff2)"?\)/g;

async function keep(url, response) {
  if (!response.ok || response.redirected) return;
  await (await caches.open(CACHE)).put(url, response);
}

// A page that was read, and what it is made of, as they are now.
async function keepWhole(url, into) {
  const response = await fetch(url, { cache: "no-cache" }); // asks whether it is still the same
  if (!response.ok || response.redirected || await into.match(url)) return;
  await into.put(url, response.clone());
  const pattern = PAGE.test(new URL(url).pathname) ? PART : /\.css$/.test(url) ? IN_SHEET : null;
  if (!pattern) return;
  const parts = [...(await response.text()).matchAll(pattern)].map(([, part]) => new URL(part, url).href);
  await Promise.allSettled(parts.map((part) => keepWhole(part, into)));
}

self.addEventListener("install", (event) => {
  self.skipWaiting();
  event.waitUntil((async () => {
    const into = await caches.open(CACHE);
    for (const name of await caches.keys()) {
      if (name === CACHE || !name.startsWith("attention-")) continue;
      const old = await (await caches.open(name)).keys();
      await Promise.allSettled(old.map(({ url }) => keepWhole(url, into)));
    }
  })());
});

self.addEventListener("activate", (event) => {
  event.waitUntil((async () => {
    for (const name of await caches.keys()) {
      if (name.startsWith("attention-") && name !== CACHE) await caches.delete(name);
    }
    await self.clients.claim();
  })());
});

// What a page loaded before this worker was there (book.js).
self.addEventListener("message", (event) => {
  event.waitUntil((async () => {
    const into = await caches.open(CACHE);
    await Promise.allSettled(event.data.map(async (url) => {
      if (!await into.match(url)) await keep(url, await fetch(url));
    }));
    event.ports[0]?.postMessage("kept");
  })());
});

const escaped = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

async function sorry() {
  const items = [];
  const cache = await caches.open(CACHE);
  for (const { url } of await cache.keys()) {
    if (!PAGE.test(new URL(url).pathname)) continue;
    const title = (await (await cache.match(url)).text()).match(/<title>([^<]*?)( &#8212;[^<]*)?<\/title>/);
    items.push(`<li><a href="${escaped(url)}">${title ? title[1] : escaped(url)}</a></li>`);
  }
  const read = items.length ? `<p>You can go on with the pages that you have read:</p><ul>${items.join("")}</ul>` : "";
  const page = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Without a connection</title>
<meta name="viewport" content="width=device-width"><style>:root{color-scheme:light dark}
body{max-width:36rem;margin:3rem auto;padding:0 1rem;font:1.1rem/1.5 serif}</style>
<h1>Without a connection</h1><p>You have not read this page before, so it was not kept, and it cannot be
fetched now.</p>${read}</html>`;
  return new Response(page, { status: 503, headers: { "Content-Type": "text/html; charset=utf-8" } });
}

async function fresh(event, url, kept) {
  try {
    const response = await fetch(event.request);
    if (kept) event.waitUntil(keep(url, response.clone()));
    return response;
  } catch (error) {
    const cache = await caches.open(CACHE);
    const found = await cache.match(url, { ignoreSearch: true });
    if (found) return found;
    if (event.request.mode === "navigate") return sorry();
    throw error;
  }
}

// What has a hash in its name stays as it is: what was kept is as good as what would come.
async function once(event, url) {
  const found = await (await caches.open(CACHE)).match(url);
  if (found) return found;
  const response = await fetch(event.request);
  event.waitUntil(keep(url, response.clone()));
  return response;
}

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== location.origin) return;
  const page = request.mode === "navigate";
  if (page && !PAGE.test(url.pathname)) return; // a file to take along
  if (page) url.search = ""; // search.html?q=…
  url.hash = "";
  const part = ["style", "script", "image", "font"].includes(request.destination);
  const named = /[.-][0-9A-Za-z]{8}\.\w+$|[0-9a-f]{64}\.\w+$|\?v=/.test(url.href);
  event.respondWith(part && named ? once(event, url.href) : fresh(event, url.href, page || part));
});
