// What the search page shows of each page it finds: the words around the word that was typed, from
// the article alone. (Sphinx looks for the word's stem, and reads menus too.)
Search.htmlToText = (html, anchor) => {
  const page = new DOMParser().parseFromString(html, "text/html");
  const article = page.querySelector("article.bd-article") ?? page.body;
  const extras = "script, style, svg, noscript, .headerlink, .explorer-place";
  for (const extra of article.querySelectorAll(extras)) extra.remove();
  const part = (anchor && article.querySelector(anchor)) || article;
  return part.textContent.replace(/\s+/g, " ");
};
{
  const summary = Search.makeSearchSummary;
  Search.makeSearchSummary = (html, stems, anchor) => {
    const typed = new URLSearchParams(location.search).get("q") ?? "";
    const text = Search.htmlToText(html, anchor).toLowerCase();
    const words = [...typed.toLowerCase().split(/[^\p{L}\p{N}]+/u), ...stems];
    return summary(html, words.filter((word) => word && text.includes(word)).slice(0, 1), anchor);
  };
}
