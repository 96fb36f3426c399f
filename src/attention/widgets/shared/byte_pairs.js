// Byte pair tokens, exactly as the package's BytePairs cuts and joins them.

const CUTS = / ?[A-Za-z']+| ?[0-9]+| ?[^ \t\r\nA-Za-z0-9']+|[ \t\r\n]+/gu;

// merges: pairs of ids, flat, in the order in which they were learned; merge i makes id 256 + i.
// encode(text) -> ids; decode(ids) -> text, in which bytes that are no UTF-8 become U+FFFD, as does
// half a surrogate pair, which is no text, before it is encoded; pieces(ids) -> a string a token.
export function bytePairs(merges) {
  const bytes = Array.from({ length: 256 }, (_, i) => [i]);
  const rank = new Map();
  for (let i = 0; i < merges.length; i += 2) {
    rank.set(merges[i] * 65536 + merges[i + 1], bytes.length);
    bytes.push([...bytes[merges[i]], ...bytes[merges[i + 1]]]);
  }
  const known = new Map();
  const text = (list) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(list));
  function word(letters) {
    if (known.has(letters)) return known.get(letters);
    let ids = Array.from(new TextEncoder().encode(letters));
    for (;;) {
      let first = Infinity; // the merge that was learned first
      for (let i = 0; i + 1 < ids.length; i++) {
        first = Math.min(first, rank.get(ids[i] * 65536 + ids[i + 1]) ?? Infinity);
      }
      if (first === Infinity) break;
      const joined = [];
      for (let i = 0; i < ids.length; i++) {
        const fits = rank.get(ids[i] * 65536 + ids[i + 1]) === first;
        joined.push(fits ? first : ids[i]);
        if (fits) i++;
      }
      ids = joined;
    }
    if (known.size > 5000) known.clear();
    known.set(letters, ids);
    return ids;
  }
  return {
    size: bytes.length,
    // TextEncoder writes U+FFFD for half a surrogate pair.
    encode: (letters) => (letters.match(CUTS) ?? []).flatMap(word),
    decode: (ids) => text(ids.flatMap((id) => bytes[id])),
    pieces: (ids) => ids.map((id) => text(bytes[id])),
  };
}

// A text as it can be seen: its spaces, line ends and other signs without a shape get one.
export const visible = (text, space = "␣") => text.replaceAll(" ", space).replaceAll("\n", "⏎")
  .replace(/[\u0000-\u001f]/g, (sign) => String.fromCharCode(0x2400 + sign.charCodeAt(0)))
  .replace(/[\u007f-\u00a0\u00ad\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]/g, () => space);
