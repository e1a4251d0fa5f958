/* Two machines, models or dates of prices side by side, from the costs that the page was built
   with. The choice stands in the address, behind the #. */
(function () {
  "use strict";

  var shown = window.epochcostShown;

  function choices(all, what) {
    if (what === "dates") { return all.dates.map(function (day) { return [day, day]; }); }
    return Object.entries(all[what]).map(function (entry) {
      return [entry[0], what === "models" ? entry[1].name : entry[0]];
    });
  }

  /* The cheapest offer of a work that held on a day; without a day, that of today. */
  function offer(work, day) {
    return work.offers.filter(function (one) {
      return day === null ? one.until === null : one.from <= day && (one.until === null || day < one.until);
    }).sort(function (a, b) { return a.cost - b.cost; })[0];
  }

  function key(what, work) {
    var parts = { machines: [work.model, work.goal], models: [work.machine, work.goal],
                  dates: [work.model, work.goal, work.machine] }[what];
    return JSON.stringify(parts);
  }

  function on(what, side, work) {
    return what === "dates" || work[what === "machines" ? "machine" : "model"] === side;
  }

  /* For each job the cheapest way of one side. */
  function best(all, what, side) {
    var found = new Map();
    all.works.filter(function (work) { return on(what, side, work); }).forEach(function (work) {
      var held = offer(work, what === "dates" ? side : null);
      if (!held) { return; }
      var known = found.get(key(what, work));
      if (!known || held.cost < known.offer.cost) {
        found.set(key(what, work), { work: work, offer: held });
      }
    });
    return found;
  }

  function link(form, page, text) {
    return shown.element("a", text, { href: form.dataset.ecRoot + page });
  }

  function said(form, all, what, work) {
    var model = all.models[work.model];
    var parts = [];
    if (what !== "models") { parts.push(link(form, model.page, model.name), shown.element("br")); }
    if (what !== "machines") {
      parts.push(link(form, all.machines[work.machine], work.machine), shown.element("br"));
    }
    return parts.concat([shown.small(all.goals[work.goal])]);
  }

  function side(row, one) {
    var facts = one.work.kind + (one.offer.assumed ? ", price assumed" : "");
    shown.cell(row, [
      shown.element("strong", shown.money(one.offer.cost, one.offer.currency)),
      shown.small(" in " + shown.duration(one.work.seconds)), shown.element("br"),
      shown.small("batch " + one.work.batch + ", " + one.offer.plan), shown.element("br"),
      shown.element("span", facts, {
        className: "ec-badge ec-" + one.work.kind + (one.offer.assumed ? " ec-assumed" : "")
      })
    ]);
  }

  function ratio(first, second) {
    return second === 0 ? "—" : (second / first).toPrecision(3);
  }

  function line(form, all, what, one, other) {
    var made = shown.element("tr");
    shown.cell(made, said(form, all, what, one.work));
    side(made, one);
    side(made, other);
    var same = one.offer.currency === other.offer.currency;
    shown.cell(made, [same ? ratio(one.offer.cost, other.offer.cost) : "—"], true);
    shown.cell(made, [ratio(one.work.seconds, other.work.seconds)], true);
    return made;
  }

  function name(all, what, value) {
    return what === "models" ? all.models[value].name : value;
  }

  function show(form, place, all) {
    var what = form.elements.what.value, a = form.elements.a.value, b = form.elements.b.value;
    var ones = best(all, what, a), others = best(all, what, b), lines = [];
    ones.forEach(function (one, job) {
      if (others.has(job)) { lines.push(line(form, all, what, one, others.get(job))); }
    });
    var left = ones.size + others.size - 2 * lines.length;
    var words = lines.length + (lines.length === 1 ? " job" : " jobs") + " on both sides" +
      (left ? "; " + left + " on one side only." : ".");
    place.replaceChildren(shown.element("p", words, { className: "ec-verdict" }));
    if (!lines.length) {
      place.append(shown.element("p", "Nothing was timed on both sides: choose another pair, or measure what is missing with epochcost run."));
      return;
    }
    place.append(shown.table(["Job", name(all, what, a), name(all, what, b),
      "Cost, second over first", "Time, second over first"], lines));
  }

  function fill(select, entries, chosen) {
    select.replaceChildren.apply(select, entries.map(function (entry) {
      return shown.element("option", entry[1], { value: entry[0] });
    }));
    if (entries.some(function (entry) { return entry[0] === chosen; })) { select.value = chosen; }
  }

  /* Of two sides that nobody chose, those with the most jobs in common. */
  function settle(form, all, a, b) {
    var what = form.elements.what.value, entries = choices(all, what);
    if (what === "dates") {
      a = a || all.dates[0];
      b = b || all.dates[all.dates.length - 1];
    } else if (!a || !b) {
      var pair = likeliest(all, what, entries);
      a = a || pair[0];
      b = b || pair[1];
    }
    fill(form.elements.a, entries, a);
    fill(form.elements.b, entries, b);
  }

  function likeliest(all, what, entries) {
    var jobs = entries.map(function (entry) { return [entry[0], best(all, what, entry[0])]; });
    var pair = [entries[0][0], entries[entries.length - 1][0]], most = -1;
    jobs.forEach(function (one, at) {
      jobs.slice(at + 1).forEach(function (other) {
        var common = Array.from(one[1].keys()).filter(function (job) { return other[1].has(job); }).length;
        if (common > most) { most = common; pair = [one[0], other[0]]; }
      });
    });
    return pair;
  }

  function remember(form) {
    var state = new URLSearchParams();
    ["what", "a", "b"].forEach(function (field) { state.set(field, form.elements[field].value); });
    history.replaceState(history.state, "", location.pathname + location.search + "#" + state);
  }

  async function begin(form) {
    var all = await shown.loaded(new URL(form.dataset.ecCompare, location.href).href, "epochcostCompare");
    var place = form.parentElement.querySelector(".ec-compared");
    var state = new URLSearchParams(location.hash.slice(1)), what = state.get("what");
    if (["machines", "models", "dates"].includes(what)) { form.elements.what.value = what; }
    settle(form, all, state.get("a"), state.get("b"));
    show(form, place, all);
    form.addEventListener("input", function (event) {
      if (event.target.name === "what") { settle(form, all); }
      show(form, place, all);
      remember(form);
    });
    form.addEventListener("submit", function (event) { event.preventDefault(); });
    form.dataset.state = "ready";
  }

  function start() {
    document.querySelectorAll("[data-ec-compare]:not([data-state])").forEach(function (form) {
      form.dataset.state = "loading";
      begin(form).catch(function (error) { console.error("epochcost: no comparison:", error); });
    });
  }

  if (window.document$) { window.document$.subscribe(start); } else { start(); }
})();
