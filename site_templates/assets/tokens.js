/* What a million tokens cost at the reader's traffic, on a decoder's page, by the programs that
   report/pages/decoder.py publishes. The address keeps the question as names and values of the form's
   fields. */
(function () {
  "use strict";

  var shown = window.epochcostShown, answers = window.epochcostBill.answers;
  var money = shown.money, duration = shown.duration, element = shown.element, cell = shown.cell;

  /* Paid for its whole term, busy or not: it stands behind what is paid by use. */
  function reserved(one) { return Number(Boolean(one.plan && one.plan.reserved)); }

  /* At the number of sequences of the most requests which keeps the bounds; nothing where none does. */
  function best(decoder, usage, asked) {
    return decoder.capacities.map(function (one) {
      return Object.assign({ sequences: one.sequences, program: one.program }, answers(one.program, usage));
    }).filter(function (one) {
      return one.timed && one.first <= asked.first && one.token <= asked.token;
    }).sort(function (one, other) { return one.request - other.request; })[0];
  }

  /* Every machine and plan that keeps the bounds, and every API, cheapest first. */
  function offers(data, asked) {
    var usage = { rate: asked.rate, prompt: asked.prompt, output: asked.output, hour: 0, api_request: 0 };
    var found = data.apis.map(function (api) {
      var cost = answers(api.program, usage);
      return Object.assign({ api: api, low: cost.mean, high: cost.mean }, cost);
    }).sort(function (one, other) { return one.mean - other.mean; });
    if (found.length) { usage.api_request = found[0].request; }
    data.decoders.forEach(function (decoder) {
      var kept = best(decoder, usage, asked);
      (kept ? decoder.plans : []).forEach(function (plan) {
        var known = Object.assign({}, usage, { hour: plan.hour });
        found.push(Object.assign({ decoder: decoder, plan: plan, capacity: kept }, answers(kept.program, known)));
      });
    });
    return found.sort(function (one, other) {
      return reserved(one) - reserved(other) || one.mean - other.mean || (one.full || 0) - (other.full || 0);
    });
  }

  function number(form, name, otherwise) {
    var field = form.elements[name];
    return field.value === "" || !field.validity.valid ? otherwise : Number(field.value);
  }

  function asked(form) {
    return {
      rate: number(form, "requests", 0.1), prompt: number(form, "prompt", 200), output: number(form, "answer", 100),
      first: number(form, "first", Infinity) / 1000, token: number(form, "token", Infinity) / 1000
    };
  }

  function row(form, one) {
    var made = element("tr"), place = one.api || one.plan;
    function amount(value) { return money(value, place.currency); }
    var spread = one.low === one.high ? [] : [element("br"), shown.small(amount(one.low) + " to " + amount(one.high))];
    var name = one.api ? "API: " + one.api.name : element("a", one.decoder.name, { href: form.dataset.ecRoot + "machines/" + one.decoder.machine + ".html" });
    var facts = one.api ? "price of " + one.api.as_of : one.decoder.precision + ", " + one.plan.name + (one.plan.assumed ? ", assumed" : "");
    cell(made, [name, element("br"), shown.small(facts)]);
    cell(made, [element("strong", amount(one.mean))].concat(spread), true, one.mean);
    if (one.api) {
      for (var left = 0; left < 4; left += 1) { cell(made, ["—"], true, Infinity); }
      return made;
    }
    cell(made, [String(one.machines)], true, one.machines);
    cell(made, [(1 / one.capacity.request).toPrecision(3)], true, 1 / one.capacity.request);
    cell(made, [duration(one.capacity.first)], true, one.capacity.first);
    cell(made, [duration(one.capacity.token)], true, one.capacity.token);
    return made;
  }

  /* Where one machine begins to be cheaper than the cheapest API; nothing where it never is. */
  function turn(found) {
    var api = found.find(function (one) { return one.api; }), own = found.find(function (one) { return one.plan; });
    if (!api || !own || api.api.currency !== own.plan.currency || !api.request) { return ""; }
    return own.turn * own.capacity.request > 1 ? " No number of these machines is cheaper than the cheapest API." :
      " One such machine is cheaper than the cheapest API from " + own.turn.toPrecision(2) + " requests/s on.";
  }

  function verdict(found) {
    var words = element("p", "", { className: "ec-verdict" }), own = found[0];
    if (!own) { words.append("Nothing that was timed at such lengths keeps these bounds."); return words; }
    words.append(element("strong", money(own.mean, (own.api || own.plan).currency)), " a million tokens, ",
      own.api ? "from " + own.api.name + "." : own.machines + " × " + own.decoder.name + " in " + own.decoder.precision +
      (own.plan.assumed ? ", at an assumed price." : "."), turn(found));
    return words;
  }

  function show(form, place, data) {
    var found = offers(data, asked(form)), titles = ["Where", "A million tokens", "Machines", "Requests/s at most, each", "First token", "Between tokens"];
    var rows = found.map(function (one) { return row(form, one); });
    place.replaceChildren.apply(place, [verdict(found)].concat(rows.length ? [shown.table(titles, rows)] : []));
    window.epochcostTables.begin();
  }

  function fields(form) { return Array.from(form.elements).filter(function (field) { return field.name; }); }

  function remember(form) {
    var state = new URLSearchParams();
    fields(form).forEach(function (field) {
      if (field.validity.valid && field.value !== field.defaultValue) { state.set(field.name, field.value); }
    });
    history.replaceState(history.state, "", location.pathname + (String(state) && "?" + state) + location.hash);
  }

  /* An address may say anything: a field takes what it would take from a hand. */
  function recall(form) {
    var state = new URLSearchParams(location.search);
    fields(form).forEach(function (field) {
      if (!state.has(field.name)) { return; }
      field.value = state.get(field.name);
      if (field.value === "" || !field.validity.valid) { field.value = field.defaultValue; }
    });
  }

  async function begin(form) {
    var place = form.nextElementSibling;
    var data = await shown.loaded(new URL(form.dataset.ecTokens, location.href).href, form.dataset.ecVariable);
    recall(form);
    show(form, place, data);
    form.addEventListener("input", function () { show(form, place, data); remember(form); });
    form.addEventListener("change", function (event) { event.target.reportValidity(); });
    form.addEventListener("submit", function (event) { event.preventDefault(); });
    form.dataset.state = "ready";
  }

  function start() {
    document.querySelectorAll("[data-ec-tokens]:not([data-state])").forEach(function (form) {
      form.dataset.state = "loading";
      begin(form).catch(function (error) { console.error("epochcost: no tokens:", error); });
    });
  }

  window.epochcostTokens = { offers: offers };
  if (window.document$) { window.document$.subscribe(start); } else { start(); }
})();
