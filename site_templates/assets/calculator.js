/* The calculator: what the form says becomes a usage, every plan's program bills it, and the answer
   is a table, cheapest first. The form's state stands in the address, behind the #. */
(function () {
  "use strict";

  var HOUR = 3600;
  var MOST_ROWS = 40;
  var NUMBER = /^(\d*\.?\d+(e-?\d\d?)?)?$/; // as the form's fields write them; or nothing
  var COMMITTED = ["reserved", "committed-use", "savings-plan"];

  /* By its own name only: a form also knows its fields by number, and itself has a length. */
  function fields(form) {
    return Array.from(form.elements).filter(function (field) { return field.name; });
  }

  /* Whether the field's own bounds hold; a whole number is rounded to. */
  function sound(field) {
    var found = field.validity;
    return !(found.badInput || found.rangeUnderflow || found.rangeOverflow);
  }

  function number(form, name, otherwise) {
    var field = form.elements[name];
    return field.value === "" || !sound(field) ? otherwise : Number(field.value);
  }

  /* What the reader knows better replaces a plan's figure, where the plan has it. */
  function known(form, program) {
    var said = {
      "interruptions.rate_per_hour": number(form, "interruptions", null),
      "owned.electricity_per_kwh": number(form, "electricity", null),
      "owned.utilisation": number(form, "utilisation", null)
    };
    if (said["owned.utilisation"] !== null) { said["owned.utilisation"] /= 100; }
    return Object.fromEntries(Object.entries(said).filter(function (entry) {
      return entry[1] !== null && Object.hasOwn(program.inputs, entry[0]);
    }));
  }

  /* A project's bill is that of the runs that count and of the failures to be expected; its time
     is as many rounds as all of them take, so many at once (epochcost.cost.project). */
  function project(form, program, seconds, vcpus) {
    var runs = Math.max(1, Math.round(number(form, "runs", 1)));
    var at_once = Math.max(1, Math.round(number(form, "at_once", 1)));
    var failed = Math.min(Math.max(number(form, "failed", 0) / 100, 0), 0.9);
    var usage = Object.assign({ seconds: seconds, vcpus: vcpus }, known(form, program));
    var one = window.epochcostBill.run(program, usage);
    var all = window.epochcostBill.run(program, Object.assign({ runs: runs }, usage));
    var failures = runs * failed / (1 - failed);
    var lines = all.lines.slice();
    if (failures > 0) { lines.push({ label: "failed runs, expected", amount: failures * one.total }); }
    var started = Math.ceil((runs + failures) * (1 - 1e-12));
    return {
      lines: lines,
      total: all.total + failures * one.total,
      seconds: one.elapsed_seconds * Math.ceil(started / at_once)
    };
  }

  function wanted(form, plan) {
    var kind = form.elements.kind.value;
    if (kind === "committed") { return COMMITTED.includes(plan.kind); }
    return kind === "" || kind === plan.kind;
  }

  function answers(form, all) {
    var work = all.works.find(function (one) { return one.id === form.elements.work.value; });
    var size = number(form, "size", work.size), found = [];
    work.timings.forEach(function (timing) {
      timing.plans.forEach(function (id) {
        var plan = all.plans[id];
        var program = work.mode === "training" ? plan.bill : plan.share;
        if (program === null || !wanted(form, plan)) { return; }
        var ends = timing.seconds.map(function (seconds) {
          return project(form, program, seconds * size, timing.vcpus);
        });
        found.push({ id: id, plan: plan, timing: timing, low: ends[0], mean: ends[1], high: ends[2] });
      });
    });
    return found.filter(function (one) { return isFinite(one.mean.total); });
  }

  function meets(form, one) {
    var deadline = number(form, "deadline", Infinity), budget = number(form, "budget", Infinity);
    return one.mean.seconds <= deadline * HOUR && one.mean.total <= budget;
  }

  function cheaper(a, b) {
    return a.plan.currency.localeCompare(b.plan.currency) || a.mean.total - b.mean.total;
  }

  var shown = window.epochcostShown;
  var money = shown.money, duration = shown.duration, element = shown.element, cell = shown.cell;
  var small = shown.small;

  function row(form, one) {
    var made = element("tr"), currency = one.plan.currency, said = one.timing;
    if (!meets(form, one)) { made.className = "ec-missed"; }
    var link = element("a", said.machine, { href: form.dataset.ecRoot + said.page });
    var facts = said.kind + " " + said.date + (said.batch ? ", batch " + said.batch : "");
    cell(made, [link, element("br"), small(facts)]);
    var place = one.plan.region ? ", " + one.plan.region : "";
    var assumed = one.plan.assumed ? ", assumed" : "";
    var dated = "price of " + one.plan.as_of + assumed;
    cell(made, [one.plan.name + place, element("br"), small(dated)]);
    var spread = one.low.total === one.high.total ? [] :
      [element("br"), small(money(one.low.total, currency) + " to " + money(one.high.total, currency))];
    cell(made, [element("strong", money(one.mean.total, currency))].concat(spread), true);
    cell(made, [duration(one.mean.seconds)], true);
    return made;
  }

  function table(form, found) {
    return shown.table(["Machine", "Plan", "Cost", "Time"], found.slice(0, MOST_ROWS).map(function (one) {
      return row(form, one);
    }));
  }

  function bill(one) {
    var made = element("details"), list = element("ul"), currency = one.plan.currency;
    made.append(element("summary", "The bill, line by line"));
    one.mean.lines.filter(function (line) { return line.amount !== 0; }).forEach(function (line) {
      list.append(element("li", line.label + ": " + money(line.amount, currency)));
    });
    made.append(list);
    return made;
  }

  function verdict(form, found) {
    var best = found.find(function (one) { return meets(form, one); });
    if (!best) {
      return [element("p", found.length ? "No machine and plan meets your demands; these come nearest." :
        "No such plan has a price for this work.")];
    }
    var words = element("p", "", { className: "ec-verdict" });
    words.append(element("strong", money(best.mean.total, best.plan.currency)),
      " on " + best.timing.machine + ", " + best.plan.name + ", in " + duration(best.mean.seconds) + ".");
    return [words, bill(best)];
  }

  function show(form, place, all) {
    var found = answers(form, all).sort(cheaper);
    var met = found.filter(function (one) { return meets(form, one); });
    var rest = found.filter(function (one) { return !meets(form, one); });
    place.replaceChildren.apply(place, verdict(form, found));
    if (found.length) { place.append(table(form, met.concat(rest))); }
    if (found.length > MOST_ROWS) {
      place.append(element("p", (found.length - MOST_ROWS) + " more are dearer or miss your demands."));
    }
  }

  /* Only what differs from the form as it came stands in the address. */
  function remember(form, all) {
    var state = new URLSearchParams();
    fields(form).forEach(function (field) {
      if (sound(field) && field.value !== plain(field, form, all)) { state.set(field.name, field.value); }
    });
    var text = state.toString();
    history.replaceState(history.state, "", location.pathname + location.search + (text ? "#" + text : ""));
  }

  function plain(field, form, all) {
    if (field.name === "size") { return String(current(form, all).size); }
    if (field.name === "work") { return all.start; }
    return field.tagName === "SELECT" ? field.options[0].value : field.defaultValue;
  }

  function current(form, all) {
    return all.works.find(function (one) { return one.id === form.elements.work.value; });
  }

  /* An address may say anything: a field takes what it would take from a hand. */
  function recall(form, all) {
    var state = new URLSearchParams(location.hash.slice(1));
    fields(form).forEach(function (field) {
      if (!state.has(field.name)) { return; }
      var before = field.value, said = state.get(field.name);
      if (field.type !== "number" || NUMBER.test(said)) { field.value = said; }
      if (field.value !== said || !sound(field)) { field.value = before; }
      if (field.name === "work") { settle(form, all); }
    });
  }

  /* Another work is of another size, in other units. */
  function settle(form, all) {
    var work = current(form, all);
    form.elements.size.value = work.size;
    form.querySelector("[data-ec-size]").textContent =
      work.mode === "training" ? "Epochs" : "Million inferences";
  }

  async function begin(form) {
    var all = await shown.loaded(new URL(form.dataset.ecCalculator, location.href).href, "epochcostCalculator");
    var place = form.parentElement.querySelector(".ec-calculated");
    function renew() { show(form, place, all); }
    settle(form, all);
    recall(form, all);
    renew();
    form.addEventListener("input", function (event) {
      if (event.target.name === "work") { settle(form, all); }
      renew();
      remember(form, all);
    });
    form.addEventListener("change", function (event) { event.target.reportValidity(); });
    form.addEventListener("submit", function (event) { event.preventDefault(); });
    form.addEventListener("reset", function () {
      setTimeout(function () { settle(form, all); renew(); remember(form, all); });
    });
    form.dataset.state = "ready";
  }

  function start() {
    document.querySelectorAll("[data-ec-calculator]:not([data-state])").forEach(function (form) {
      form.dataset.state = "loading";
      begin(form).catch(function (error) { console.error("epochcost: no calculator:", error); });
    });
  }

  if (window.document$) { window.document$.subscribe(start); } else { start(); }
})();
