"use strict";
// The page works without this: it is a document. Here is what a document cannot do by itself: search,
// follow the reader in the outline, switch between light and dark, fold everything at once.
(() => {
  const root = document.documentElement;
  const $ = (selector) => document.querySelector(selector);
  const main = $("main"), outline = $("#outline"), box = $(".search"), input = $(".search input");
  root.classList.remove("no-script");

  // -- where the reader is ------------------------------------------------------------------------

  const rows = new Map();
  for (const link of outline.querySelectorAll("#tree a")) rows.set(link.getAttribute("href").slice(1), link.parentElement);
  let here = null;
  const watcher = new IntersectionObserver((seen) => {
    const top = seen.filter((one) => one.isIntersecting).map((one) => one.target)[0];
    if (!top || !rows.has(top.id)) return;
    here?.classList.remove("here");
    here = rows.get(top.id);
    here.classList.add("here");
    const frame = outline.getBoundingClientRect(), place = here.getBoundingClientRect();
    if (place.top < frame.top || place.bottom > frame.bottom)
      outline.scrollTop += place.top - frame.top - frame.height / 2;
  }, { rootMargin: "-70px 0px -75% 0px" });
  for (const article of main.querySelectorAll("article")) watcher.observe(article);

  const unfold = (element) => {
    for (let at = element; at && at !== main; at = at.parentElement)
      if (at.nodeName === "DETAILS") at.open = true;
  };
  const visit = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (!target) return;
    unfold(target);
    target.scrollIntoView();
  };
  addEventListener("hashchange", visit);
  outline.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link) return;
    root.classList.remove("menu");
    if (link.hash === location.hash) visit();
  });

  // -- search -------------------------------------------------------------------------------------

  const BLOCKS = "p,li,pre,td,th,h3,h4,h5,h6,blockquote,.text";
  const SHOWN_AT_MOST = 2000;
  const marks = window.CSS?.highlights ? { all: new Highlight(), now: new Highlight() } : null;
  if (marks) {
    marks.now.priority = 1;
    CSS.highlights.set("found", marks.all);
    CSS.highlights.set("found-now", marks.now);
  }
  let blocks = null, hits = [], at = -1;

  // The texts of the page, each with the nodes it is made of: a word may run through several.
  const index = () => {
    const found = [], walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(), last = null; node; node = walker.nextNode()) {
      if (!node.parentElement.closest(".text, pre")) continue;
      const element = node.parentElement.closest(BLOCKS);
      if (!last || last.element !== element) found.push(last = { element, text: "", nodes: [] });
      last.nodes.push({ node, start: last.text.length });
      last.text += node.data;
    }
    return found;
  };
  const place = (block, offset, isEnd) => {
    let low = 0, high = block.nodes.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1, start = block.nodes[middle].start;
      if (start < offset || (start === offset && !isEnd)) low = middle; else high = middle - 1;
    }
    return [block.nodes[low].node, offset - block.nodes[low].start];
  };
  const range = (hit) => {
    const found = document.createRange();
    found.setStart(...place(hit.block, hit.start, false));
    found.setEnd(...place(hit.block, hit.end, true));
    return found;
  };
  const forget = () => {
    hits = []; at = -1;
    marks?.all.clear();
    marks?.now.clear();
    for (const row of outline.querySelectorAll(".hit")) row.classList.remove("hit");
    main.querySelector(".found")?.classList.remove("found");
  };
  const search = () => {
    forget();
    const wanted = input.value.trim();
    box.classList.toggle("asked", wanted !== "");
    if (wanted) {
      blocks ??= index();
      const pattern = new RegExp(wanted.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&").replace(/\s+/g, "\\s+"), "giu");
      for (const block of blocks)
        for (const match of block.text.matchAll(pattern))
          hits.push({ block, start: match.index, end: match.index + match[0].length });
      for (const hit of hits) rows.get(hit.block.element.closest("article")?.id)?.classList.add("hit");
      if (marks) for (const hit of hits.slice(0, SHOWN_AT_MOST)) marks.all.add(range(hit));
    }
    say();
  };
  const say = () => {
    $(".search output").value = hits.length ? `${at + 1} / ${hits.length}` : "none";
    for (const button of box.querySelectorAll("button")) button.disabled = hits.length === 0;
  };
  const go = (step) => {
    if (!hits.length) return;
    at = at < 0 && step < 0 ? hits.length - 1 : (at + step + hits.length) % hits.length;
    const { element } = hits[at].block, found = range(hits[at]), article = element.closest("article, .summary-card");
    unfold(element);
    main.querySelector(".found")?.classList.remove("found");
    if (article && !marks) article.classList.add("found");
    marks?.now.clear();
    marks?.now.add(found);
    found.startContainer.parentElement.scrollIntoView({ block: "center" });
    const where = found.getBoundingClientRect();
    if (where.top < 70 || where.bottom > innerHeight) scrollBy(0, where.top - innerHeight / 2);
    say();
  };
  let soon = 0;
  const searchNow = () => { clearTimeout(soon); soon = 0; search(); go(1); };
  input.addEventListener("input", () => { clearTimeout(soon); soon = setTimeout(searchNow, 120); });
  box.addEventListener("submit", (event) => { event.preventDefault(); go(1); });
  $("#previous").addEventListener("click", () => go(-1));
  $("#next").addEventListener("click", () => go(1));
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); if (soon) searchNow(); else go(event.shiftKey ? -1 : 1); }
    if (event.key === "Escape") { clearTimeout(soon); soon = 0; input.value = ""; search(); input.blur(); }
  });
  addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.ctrlKey && !event.metaKey && event.target !== input) {
      event.preventDefault();
      input.focus();
      input.select();
    }
  });

  // -- folding, light and dark, the menu, paper -----------------------------------------------------

  const folds = () => main.querySelectorAll("details");
  $("#unfold").addEventListener("click", (event) => {
    const open = [...folds()].some((fold) => !fold.open);
    for (const fold of folds()) fold.open = open;
    event.currentTarget.setAttribute("aria-pressed", open);
  });
  $("#theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
  $("#menu").addEventListener("click", (event) => {
    event.currentTarget.setAttribute("aria-expanded", root.classList.toggle("menu"));
  });
  main.addEventListener("click", () => root.classList.remove("menu"));
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...folds()].filter((fold) => !fold.open);
    for (const fold of folded) fold.open = true;
  });
  addEventListener("afterprint", () => { for (const fold of folded) fold.open = false; });

  visit();
})();
