/* The calculator: the form becomes a usage, every plan's program bills it, and the answer is a verdict
   above a list of machines. The address stores the question as names and values of the form's fields;
   each may be left out:

     model       id of a model, or published/ID of a published table
     job         train, batch (a number of examples) or serve
     runs every  number of trainings once (in all), or each day, week or month
     rate hours  requests a second, and the hours a day during which they come
     examples tokens   examples of a batch or of an epoch, and tokens of each
     deadline    hours for one run; within: milliseconds for 99 % of answers
     budget      a month, or in all if every=once
     prices      on-demand, spot, committed, owned, or nothing for all list prices
     a b         ids of two machines to compare
     epochs failed busy interruptions electricity utilisation: the reader's own assumptions */
(function () {
  "use strict";

  var HOUR = 3600, MILLION = 1e6;
  var NUMBER = /^(\d*\.?\d+(e-?\d\d?)?)?$/; // as the form's fields write them, or empty

  var shown = window.epochcostShown;
  var money = shown.money, duration = shown.duration, element = shown.element, cell = shown.cell;
  var small = shown.small, odds = window.epochcostOdds, answers = window.epochcostBill.answers;

  /* A training is a job with a start and rounding, all else a share of a machine's hours. */
  function programOf(question, plan) { return question.job === "train" ? plan.bill : plan.share; }

  /* The list of times that a job uses. */
  function timed(job) { return job === "train" ? "train" : "serve"; }

  /* By name only: a form also has its fields by number, and a length. */
  function fields(form) {
    return Array.from(form.elements).filter(function (field) { return field.name; });
  }

  /* Whether a value is within the field's bounds; whole numbers are rounded later. */
  function sound(field) {
    var found = field.validity;
    return !(found.badInput || found.rangeUnderflow || found.rangeOverflow);
  }

  /* Say below a field which numbers it expects, if it ignores ``value``. */
  function explain(field, value, wrong) {
    var old = field.parentElement.querySelector("[role=alert]"), limit = value > Number(field.max) ? "at most " + field.max : "at least " + field.min;
    if (old) { old.remove(); }
    if (wrong) { field.after(element("small", "A value was ignored: expected a number, " + limit + ".", { role: "alert" })); }
  }

  function number(form, name, otherwise) {
    var field = form.elements[name];
    return field.value === "" || !sound(field) ? otherwise : Number(field.value);
  }

  /* The question: times in seconds, shares from 0 to 1, money in the plan's currency. */
  function asked(form, data, monthHours) {
    var every = form.elements.every.value, job = form.elements.job.value, days = monthHours / 24;
    var batch = job === "batch", own = batch ? MILLION : data.examples, name = timed(job);
    var examples = own ? number(form, "examples", own) / (batch ? 1 : own) : 1;
    var longer = data.tokens ? number(form, "tokens", data.tokens) / data.tokens : 1;
    var times = { once: 1, day: days, week: days / 7, month: 1 };
    return {
      job: job,
      timed: name,
      stacks: form.elements.software.value ? [form.elements.software.value] : data.stacks[name],
      prices: form.elements.prices.value,
      a: form.elements.a.value,
      b: form.elements.b.value,
      every: every,
      times: Math.max(1, Math.round(number(form, "runs", 1))) * times[every],
      work: examples * longer * (batch ? 1 : number(form, "epochs", data.epochs)),
      deadline: number(form, "deadline", Infinity) * HOUR,
      rate: number(form, "rate", 10),
      month: number(form, "hours", 24) * days * HOUR,
      within: number(form, "within", Infinity) / 1000,
      budget: number(form, "budget", Infinity),
      failed: number(form, "failed", 0) / 100,
      busy: number(form, "busy", 70) / 100,
      known: {
        "interruptions.rate_per_hour": number(form, "interruptions", null),
        "owned.electricity_per_kwh": number(form, "electricity", null),
        "owned.utilisation": number(form, "utilisation", null) / 100 || null
      }
    };
  }

  /* The reader's own assumptions replace figures of plans that have them. */
  function bill(program, usage, known) {
    var better = Object.entries(known).filter(function (entry) {
      return entry[1] !== null && Object.hasOwn(program.inputs, entry[0]);
    });
    return window.epochcostBill.run(program, Object.assign(usage, Object.fromEntries(better)));
  }

  /* One training with its expected failures; a failure takes as long as a success. */
  function trained(question, timing, plan, seconds, programs) {
    var once = question.every === "once", runs = once || question.job === "batch" ? 1 : question.times;
    var work = question.work / (question.job === "batch" ? timing.batch : 1);
    var usage = { seconds: seconds * work, vcpus: timing.vcpus, runs: runs };
    var one = bill(programOf(question, plan), usage, question.known);
    one.lines.forEach(function (line) { line.amount /= runs; });
    var elapsed = one.elapsed_seconds / runs;
    var job = answers(programs.training, {
      total: one.total / runs, elapsed: elapsed, failed: question.failed, times: question.times
    });
    if (job.failures > 0) { one.lines.push({ label: "failed runs, expected", amount: job.failures }); }
    return Object.assign(job, {
      lines: one.lines, seconds: elapsed, machines: once ? 1 : job.machines
    });
  }

  /* Enough machines to keep each below the allowed load, for a month. */
  function served(question, timing, plan, seconds, programs) {
    var job = answers(programs.serving, { rate: question.rate, seconds: seconds, batch: timing.batch, busy: question.busy });
    var usage = { seconds: question.month, count: job.machines, vcpus: timing.vcpus };
    var month = bill(plan.share, usage, question.known);
    var costs = answers(programs.million, { total: month.total, rate: question.rate, month: question.month });
    return Object.assign(job, costs, {
      lines: month.lines, total: month.total, seconds: job.load < 1 ? job.seconds : Infinity
    });
  }

  function wanted(question, plan) {
    return question.prices === "" || question.prices === plan.group;
  }

  /* The reason why a figure cannot win; empty if it can. */
  /* Interruptions an hour, the reader's or the plan's; null if they are unknown. */
  function taken(question, plan) {
    var rate = question.known["interruptions.rate_per_hour"];
    return rate === null ? plan.interruptions : rate;
  }

  function reserve(question, timing, plan) {
    if (plan.committed && !question.prices) { return "paid for its whole term"; }
    if (taken(question, plan) === null) { return "unknown rate of interruptions"; }
    return plan.assumed && !(plan.own && question.prices === plan.group) ? "assumed price" : "";
  }

  function limit(question) { return question.job === "serve" ? question.within : question.deadline; }

  function miss(question, found) {
    if (found.seconds > limit(question)) { return "too slow"; }
    return found.total > question.budget ? "over budget" : "";
  }

  function candidate(question, timing, plan, programs) {
    var price = question.job === "serve" ? served : trained;
    var ends = timing.seconds.map(function (seconds) { return price(question, timing, plan, seconds, programs); });
    return {
      timing: timing, plan: plan, low: ends[0], mean: ends[1], high: ends[2],
      apart: reserve(question, timing, plan), misses: miss(question, ends[1])
    };
  }

  function better(one, other) {
    return Boolean(one.apart) - Boolean(other.apart) || Boolean(one.misses) - Boolean(other.misses) ||
      one.plan.currency.localeCompare(other.plan.currency) ||
      one.mean.total - other.mean.total || one.mean.seconds - other.mean.seconds;
  }

  /* Machines that miss the deadline come last, the fastest first. */
  function closer(one, other) {
    function rank(way) { return 3 * Boolean(way.apart) + ["", "over budget", "too slow"].indexOf(way.misses); }
    return rank(one) - rank(other) || (one.misses === "too slow" && one.mean.seconds - other.mean.seconds) || better(one, other);
  }

  /* Each machine's cheapest way that fits, and its cheapest way that cannot win; best first. */
  function candidates(question, data, known, stack) {
    var found = [], best = new Map();
    data[question.timed].forEach(function (timing) {
      if (timing.stack !== stack) { return; }
      if ((question.a || question.b) && ![question.a, question.b].includes(timing.machine)) { return; }
      timing.plans.forEach(function (id) {
        var plan = known.plans[id], program = programOf(question, plan);
        if (program === null || !(plan.assumed || wanted(question, plan))) { return; }
        found.push(candidate(question, timing, plan, known.jobs));
      });
    });
    found.filter(function (one) { return isFinite(one.mean.total); }).sort(better).forEach(function (one) {
      var key = one.timing.name + (one.apart ? " apart" : "");
      if (!best.has(key)) { best.set(key, one); }
    });
    return Array.from(best.values()).sort(closer);
  }

  /* The probability of being the cheapest, the cost over that of the choice, and the limits. */
  function chances(way, best) {
    var facts = [odds.multiple(way, best), odds.limits(way)].filter(Boolean);
    return [element("strong", way.wins === undefined ? "—" : odds.scenarios(way.wins))].concat(facts.flatMap(function (fact) { return [element("br"), small(fact)]; }));
  }

  /* The period of a total. */
  function run(question) { return question.job === "batch" ? "batch" : "training"; }

  function per(question) { return question.every === "once" && question.job !== "serve" ? "in all" : "a month"; }

  function spread(low, high, words) { return low === high ? "" : words(low) + " to " + words(high); }

  function badge(one, shapes) {
    var mark = one.timing.kind + (one.plan.assumed ? ", price assumed" : "");
    var kinds = "ec-badge ec-" + one.timing.kind + (one.plan.assumed ? " ec-assumed" : "");
    return element("span", shapes[mark] + "\u00a0" + mark, { className: kinds });
  }

  function range(one, key, words) {
    var said = spread(one.low[key], one.high[key], words);
    return [element("strong", words(one.mean[key]))].concat(said ? [element("br"), small(said)] : []);
  }

  function interrupted(question, plan) {
    var rate = taken(question, plan);
    if (plan.group !== "spot") { return ""; }
    return rate === null ? ", interruptions unknown" : ", " + rate + " interruptions an hour";
  }

  function row(form, question, one, shapes, best) {
    var made = element("tr"), plan = one.plan, timing = one.timing;
    function amount(value) { return money(value, plan.currency); }
    var machine = element("a", timing.name, { href: form.dataset.ecRoot + "machines/" + timing.machine + ".html" });
    var place = plan.name + (plan.region ? ", " + plan.region : "") + ", " + plan.as_of + interrupted(question, plan);
    if (one.misses) { made.className = "ec-missed"; }
    cell(made, [machine, element("br"), small([place, one.misses].filter(Boolean).join("; "))]);
    if (question.times !== 1 || question.job === "serve") { cell(made, range(one, "total", amount), true, one.mean.total); }
    cell(made, range(one, "each", amount), true, one.mean.each);
    cell(made, range(one, "seconds", duration), true, one.mean.seconds);
    if (question.job === "serve") {
      cell(made, [one.mean.machines + " × ", small(share(one.mean.load) + shown.busy(one.mean.load))], true, one.mean.machines);
    }
    cell(made, chances(one, best), true, one.wins || 0);
    var facts = timing.software + (timing.precision && ", ") + (timing.precision === "mixed" ? "mixed precision" : timing.precision) + ", batch " + timing.batch + (one.apart ? "; " + one.apart : "");
    cell(made, [badge(one, shapes), element("br"), small(facts)]);
    return made;
  }

  function share(part) { return shown.rounded(100 * part, 2) + " %"; }

  function table(form, question, found, shapes) {
    var costs = question.job === "serve" ? ["Cost a month", "A million", "Answer within", "Machines"] :
      (question.times === 1 ? [] : ["Cost " + per(question)]).concat("A " + run(question), "Time");
    var titles = ["Machine"].concat(costs, "Cheapest in", "Evidence");
    return shown.table(titles, found.map(function (one) { return row(form, question, one, shapes, found[0]); }));
  }

  function lines(question, one) {
    var list = element("ul"), currency = one.plan.currency;
    one.mean.lines.filter(function (line) { return line.amount !== 0; }).forEach(function (line) {
      list.append(element("li", line.label + ": " + money(line.amount, currency)));
    });
    return fold("The bill of " + (question.job === "serve" ? "a month" : "one " + run(question)) + ", line by line", list);
  }

  function fold(summary, inside) {
    var made = element("details", "", { className: "ec-fold" });
    made.append(element("summary", summary), inside);
    return made;
  }

  /* The cost of a request relative to one on a machine that is always busy. */
  function idle(one) {
    var times = 1 / one.mean.load;
    return times < 1.1 ? "" : " Each request costs " + shown.rounded(times, 2) + " times as much as on a machine that is always busy.";
  }

  function answer(question, one) {
    var mean = one.mean, amount = money(mean.total, one.plan.currency), each = money(mean.each, one.plan.currency);
    var words = element("p", "", { className: "ec-verdict" }), said;
    if (question.job === "serve") {
      said = " for " + mean.machines + " × " + one.timing.name + ", " + share(mean.load) + " busy: " + each +
        " a million requests, 99 % answered within " + duration(mean.seconds) + "." + idle(one);
    } else {
      said = " on " + one.timing.name + (question.times === 1 ? "" : ": " + each + " a " + run(question)) +
        ", in " + duration(mean.seconds) + "." +
        (mean.machines > 1 ? " It takes " + mean.machines + " machines in parallel." : "");
    }
    words.append(element("strong", amount + (question.times === 1 && per(question) === "in all" ? "" : " " + per(question))), said);
    return words;
  }

  function certainty(one, question) {
    var currency = one.plan.currency, kept = odds.limits(one), doubt = one.plan.unconfirmed;
    var said = spread(one.low.total, one.high.total, function (value) { return money(value, currency); });
    return small((said ? "Range " + said + " " + per(question) + ". " : one.exact ? "No range: the source states a single time. " : "") +
      odds.sureness(one) + (kept ? kept[0].toUpperCase() + kept.slice(1) + " scenarios. " : "") +
      "Plan: " + one.plan.name + ", price of " + one.plan.as_of + (doubt && "; " + doubt + " unconfirmed") + ".");
  }

  /* The fastest of the ways that fit, unless it is the cheapest. */
  function fastest(found, best) {
    var one = found.filter(function (other) { return !other.apart && other.misses === best.misses; }).reduce(function (first, other) {
      return other.mean.seconds < first.mean.seconds ? other : first;
    });
    return one === best ? "" : " Fastest: " + duration(one.mean.seconds) + " on " + one.timing.name + ", for " +
      money(one.mean.each, one.plan.currency) + ".";
  }

  function verdict(question, found, shapes) {
    var best = found.find(function (one) { return !one.apart; });
    if (!best) {
      var none = found.length ? "No price of this kind can be compared; the list below shows the others." :
        "No machine has both a time and a price of this kind for this job.";
      return [element("p", none, { className: "ec-verdict" })];
    }
    var sure = element("p");
    sure.append(badge(best, shapes), " ", certainty(best, question));
    if (question.job !== "serve") { sure.append(small(fastest(found, best))); }
    var parts = [answer(question, best), sure, lines(question, best)];
    if (best.misses) { parts.unshift(element("p", "No machine is within the limits. The closest:")); }
    return parts;
  }

  /* Which of two has less of something, and by how much. */
  function less(one, other, key, word, words) {
    var first = one.mean[key] <= other.mean[key] ? one : other, second = first === one ? other : one;
    var factor = second.mean[key] / first.mean[key];
    if (factor < 1.005) { return "Both are equally " + word[0] + ". "; }
    return first.timing.name + " is " + shown.rounded(factor, 2) + " times " + word[1] + ": " +
      words(first.mean[key], first.plan.currency) + " vs. " + words(second.mean[key], second.plan.currency) +
      odds.beside(first, second, key, word[1]) + ". ";
  }

  function versus(question, found) {
    var sides = [question.a, question.b].map(function (id) {
      return found.find(function (one) { return one.timing.machine === id; });
    });
    var words = element("p", "", { className: "ec-verdict" });
    if (!sides[0] || !sides[1] || sides[0] === sides[1]) {
      words.append("Choose two different machines that have a time and a price of this kind.");
      return [words];
    }
    var same = sides[0].plan.currency === sides[1].plan.currency;
    words.append(element("strong", same ? less(sides[0], sides[1], "total", ["expensive", "cheaper"], money) : ""),
      less(sides[0], sides[1], "seconds", ["fast", "faster"], duration));
    return [words];
  }

  function show(form, place, data, known) {
    var question = asked(form, data, known.month_hours);
    /* The best known software that has an answer. */
    var ways = question.stacks.map(function (stack) { return candidates(question, data, known, stack); });
    var found = ways.find(function (list) { return list.some(function (one) { return !one.apart; }); }) || ways[0] || [];
    var main = found.filter(function (one) { return !one.apart; });
    var apart = found.filter(function (one) { return one.apart; });
    var two = question.a && question.b, listed = two ? found : main;
    var words = place.firstElementChild, lists = place.lastElementChild;
    odds.weigh(listed, data.draws, { seconds: limit(question), total: question.budget }, two);
    form.elements.budget.labels[0].firstChild.textContent = "Budget ($ " + per(question) + ") ";
    words.replaceChildren.apply(words, two ? versus(question, found) : verdict(question, found, known.shapes));
    lists.replaceChildren.apply(lists, listed.length ? [table(form, question, listed, known.shapes)] : []);
    if (apart.length && !two) {
      lists.append(fold("Not compared: " + apart.length + " with an assumed price, or without a known rate of interruptions", table(form, question, apart, known.shapes)));
    }
    window.epochcostTables.begin();
  }

  /* The address contains the fields that differ from their defaults; if any does, also job and model. */
  function remember(form, defaults) {
    var state = new URLSearchParams(), differ = fields(form).filter(function (field) {
      return sound(field) && field.value !== defaults.get(field.name);
    });
    fields(form).forEach(function (field) {
      var always = differ.length && ["job", "model"].includes(field.name);
      if (always || differ.includes(field)) { state.set(field.name, field.value); }
    });
    history.replaceState(history.state, "", location.pathname + (String(state) && "?" + state));
  }

  /* An address may contain anything: a field accepts only values that a reader could enter. */
  function recall(form, state) {
    fields(form).forEach(function (field) {
      if (!state.has(field.name)) { return; }
      var before = field.value, said = state.get(field.name);
      if (field.type !== "number" || NUMBER.test(said)) { field.value = said; }
      if (field.value !== said || !sound(field)) {
        field.value = before;
        if (field.type === "number") { explain(field, said, true); }
      }
    });
  }

  /* Show the machines with a time, and the fields that the job needs. */
  function settle(form, data, state) {
    var job = form.elements.job.value, names = new Map(), lacks = { examples: job === "train" && !data.examples, tokens: !data.tokens };
    data[timed(job)].forEach(function (one) { if (!names.has(one.machine)) { names.set(one.machine, one.name); } });
    var sorted = Array.from(names).sort(function (one, other) { return one[1].localeCompare(other[1]); });
    ["a", "b"].forEach(function (side) {
      var field = form.elements[side], said = state.get(side) || field.value;
      var chosen = sorted.find(function (one) { return one.includes(said); });
      field.replaceChildren.apply(field, [["", "any"]].concat(sorted).map(function (one) {
        return element("option", one[1], { value: one[0] });
      }));
      field.value = chosen ? chosen[0] : "";
    });
    form.elements.epochs.placeholder = data.epochs;
    form.elements.examples.placeholder = job === "batch" ? MILLION : data.examples;
    form.elements.tokens.placeholder = data.tokens;
    form.querySelectorAll("[data-ec-job]").forEach(function (label) { label.hidden = !label.dataset.ecJob.split(" ").includes(job) || Boolean(lacks[label.control.name]); });
  }

  async function renew(form, place, state) {
    var folder = new URL(form.dataset.ecCalculator, location.href).href, model = form.elements.model.value;
    var known = await shown.loaded(folder + "plans.js", "epochcostPlans");
    var data = await shown.loaded(folder + model + ".js", "epochcost/" + model);
    if (form.elements.model.value !== model) { return; }
    ["train", "serve"].forEach(function (job) {
      data[job] = data[job].map(function (timing) { return Object.assign({}, known.machines[timing.machine], timing); });
    });
    settle(form, data, state);
    show(form, place, data, known);
  }

  async function begin(form) {
    var place = form.parentElement.querySelector(".ec-calculated"), defaults = new FormData(form), state = new URLSearchParams(location.search);
    async function again() {
      fields(form).forEach(function (field) { explain(field, field.value, !sound(field)); });
      await renew(form, place, new URLSearchParams());
      remember(form, defaults);
    }
    recall(form, state);
    await renew(form, place, state);
    form.addEventListener("input", again);
    form.addEventListener("change", function (event) { event.target.reportValidity(); });
    form.addEventListener("submit", function (event) { event.preventDefault(); });
    form.addEventListener("reset", function () { setTimeout(again); });
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
