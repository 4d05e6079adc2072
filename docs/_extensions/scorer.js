// The order of search results: guides, then the reference, then figures, the changelog and pages for contributors.
// A long query is most likely an error message: numbers, shapes and names in it may stand on no page, so a page needs only
// most of its words, and the page of errors comes first.
const LONG = 6, SHARE_OF_WORDS = 0.6;
let isMessage = false;
var Scorer = {
  score: ([page, title, anchor, description, score]) => {
    if (isMessage && page.endsWith("errors")) return score + 100;
    if (/^(contributing\/|benchmarks)/.test(page)) return score - 20;
    return score + (/^(api\/|examples$)/.test(page) ? 0 : 3);
  },
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};

// Sphinx puts this file in front of its own code; a microtask runs behind it, before the index is loaded.
queueMicrotask(() => {
  const search = Search._performSearch, find = Search.performTermsSearch;
  Search._performSearch = (query, ...words) => {
    isMessage = query.trim().split(/\s+/).length >= LONG;
    return search(query, ...words);
  };
  Search.performTermsSearch = (words, excluded) => {
    if (!isMessage) return find(words, excluded);
    const pages = new Map();
    for (const word of words)
      for (const result of find(new Set([word]), excluded)) {
        const found = pages.get(result[0]) ?? { result, count: 0 };
        pages.set(result[0], { ...found, count: found.count + 1 });
      }
    const enough = [...pages.values()].filter(({ count }) => count >= SHARE_OF_WORDS * words.size);
    return enough.map(({ result, count }) => (result[4] = count, result));
  };
});
