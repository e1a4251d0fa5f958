/* The cost of a million tokens at the reader's traffic, on a decoder's page, by the programs of
   report/traffic.py. The address stores the question as names and values of the form's fields. */
(function () {
  "use strict";

  var MILLION = 1e6, MONTH = 730 * 3600; // seconds of a billed month
  var shown = window.epochcostShown, answers = window.epochcostBill.answers;
  var money = shown.money, duration = shown.duration, rounded = shown.rounded, element = shown.element, cell = shown.cell;

  /* Reserved plans are paid for their whole term; they are listed after plans paid by use. */
  function reserved(one) { return Number(Boolean(one.plan && one.plan.reserved)); }

  /* The number of sequences with the most requests within the bounds; undefined without any. */
  function best(decoder, usage, asked) {
    return decoder.capacities.map(function (one) {
      return Object.assign({ sequences: one.sequences, program: one.program }, answers(one.program, usage));
    }).filter(function (one) {
      return one.timed && one.first <= asked.first && one.token <= asked.token;
    }).sort(function (one, other) { return one.request - other.request; })[0];
  }

  /* Predicted machines, each with the copies and sequences of the most requests within the bounds. */
  function predicted(data, usage, asked, shared) {
    var kept = {};
    (data.timings || []).forEach(function (timing) {
      var room = timing.room / (asked.prompt + asked.output);
      timing.step.forEach(function (step, power) {
        var sequences = Math.pow(2, power), known = { sequences: sequences, step: step, alone: timing.step[0] };
        var phases = answers(shared.capacity, Object.assign(known, timing.phases, usage));
        if (sequences > room || phases.first > asked.first || phases.between > asked.token) { return; }
        Object.keys(timing.machines).forEach(function (machine) {
          var copy = { sequences: sequences, copies: timing.machines[machine] };
          function request(end) {
            return answers(shared.request, Object.assign({
              first: phases.first * timing.spread[end], token: phases.token * timing.spread[(power ? 4 : 2) + end]
            }, copy, usage)).request;
          }
          var whole = answers(shared.request, Object.assign({}, phases, copy, usage)).request;
          if (kept[machine] && kept[machine].request <= whole) { return; }
          kept[machine] = {
            sequences: sequences, first: phases.first, token: phases.between, request: whole, program: shared.cost,
            ends: function () { return { request: whole, request_low: request(0), request_high: request(1) }; },
            software: timing.software
          };
        });
      });
    });
    return Object.keys(kept).map(function (machine) {
      var about = Object.assign({ machine: machine, precision: data.precision, software: kept[machine].software }, shared.machines[machine]);
      return { decoder: about, capacity: kept[machine] };
    });
  }

  /* Every machine and plan within the bounds, and every API, cheapest first. */
  function offers(data, asked, shared) {
    var usage = { rate: asked.rate, prompt: asked.prompt, output: asked.output, hour: 0, api_request: 0 };
    var found = data.apis.map(function (api) {
      var cost = answers(api.program, usage);
      return Object.assign({ api: api, low: cost.mean, high: cost.mean }, cost);
    }).sort(function (one, other) { return one.mean - other.mean; });
    if (found.length) { usage.api_request = found[0].request; }
    data.decoders.map(function (decoder) {
      return { decoder: decoder, capacity: best(decoder, usage, asked) };
    }).concat(shared ? predicted(data, usage, asked, shared) : []).forEach(function (one) {
      (one.capacity ? one.decoder.plans : []).forEach(function (plan) {
        var known = Object.assign({ hour: plan.hour }, one.capacity.ends && one.capacity.ends());
        found.push(Object.assign({ plan: plan, rate: asked.rate }, one, answers(one.capacity.program, Object.assign({}, usage, known))));
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
      rate: number(form, "requests", 1), prompt: number(form, "prompt", 1000), output: number(form, "answer", 200),
      count: number(form, "count", 0), first: number(form, "first", Infinity) / 1000, token: number(form, "token", Infinity) / 1000
    };
  }

  function row(form, one) {
    var made = element("tr"), place = one.api || one.plan;
    function amount(value) { return money(value, place.currency); }
    var spread = one.low === one.high ? [] : [element("br"), shown.small(amount(one.low) + " to " + amount(one.high))];
    var name = one.api ? "API: " + one.api.name : element("a", one.decoder.name, { href: form.dataset.ecRoot + "machines/" + one.decoder.machine + ".html" });
    var facts = one.api ? "price of " + one.api.as_of : one.decoder.software + ", " + one.decoder.precision + ", " + one.plan.name + ", " + one.plan.as_of + (one.plan.assumed ? ", assumed" : "");
    cell(made, [name, element("br"), shown.small(facts)]);
    cell(made, [element("strong", amount(one.mean))].concat(spread), true, one.mean);
    if (one.api) {
      for (var left = 0; left < 4; left += 1) { cell(made, ["—"], true, Infinity); }
      return made;
    }
    var most = 1 / one.capacity.request, busy = one.rate / most / one.machines;
    cell(made, [String(one.machines), element("br"), shown.small(rounded(100 * busy, 2) + " %" + shown.busy(busy))], true, one.machines);
    cell(made, [rounded(most, 3)], true, most);
    cell(made, [duration(one.capacity.first)], true, one.capacity.first);
    cell(made, [duration(one.capacity.token)], true, one.capacity.token);
    return made;
  }

  /* The rate above which a machine is cheaper than the cheapest API; empty without machines or APIs. */
  function turn(found) {
    var api = found.find(function (one) { return one.api; });
    var own = found.filter(function (one) { return api && one.plan && !one.plan.reserved && one.plan.currency === api.api.currency; });
    if (!own.length || !api.request) { return ""; }
    var turned = own.filter(function (one) { return one.turn * one.capacity.request <= 1; })
      .sort(function (one, other) { return one.turn - other.turn; })[0];
    return turned ? " From " + rounded(turned.turn, 2) + " requests/s, " + turned.decoder.name + " is cheaper than the cheapest API if it is kept busy." :
      " No machine is cheaper than the cheapest API, even at full load.";
  }

  /* The longest timed lengths if they are why no measured machine is offered; else empty. */
  function untimed(data, found, question) {
    var measured = data.decoders;
    if (found.some(function (one) { return measured.indexOf(one.decoder) >= 0; })) { return ""; }
    return [["prefill", "prompts", question.prompt], ["decode", "contexts", question.prompt + question.output / 2]]
      .filter(function (phase) { return measured.length && measured.every(function (one) { return phase[2] > one.longest[phase[0]]; }); })
      .map(function (phase) {
        var longest = measured.map(function (one) { return one.longest[phase[0]]; });
        return " Measured machines are left out: " + phase[1] + " were timed up to " + rounded(Math.max.apply(null, longest), 9) + " tokens; yours has " + rounded(phase[2], 9) + ".";
      })[0] || "";
  }

  function verdict(data, found, question) {
    var words = element("p", "", { className: "ec-verdict" }), own = found[0];
    if (!own) {
      words.append("No machine has a time " + (isFinite(question.first + question.token) ? "within these bounds " : "") + "for prompts and answers of these lengths." + untimed(data, found, question));
      return words;
    }
    words.append(element("strong", money(own.mean, (own.api || own.plan).currency)), " a million tokens, ",
      own.api ? "from " + own.api.name + "." : own.machines + " × " + own.decoder.name + " in " + own.decoder.precision +
      (own.plan.assumed ? ", at an assumed price." : "."), turn(found) + untimed(data, found, question));
    words.append(" A month costs " + money(own.mean * question.rate * MONTH * tokens(question) / MILLION, (own.api || own.plan).currency) + ".");
    if (question.count) { words.append(" " + batch(found, question)); }
    return words;
  }

  function tokens(question) { return question.prompt + question.output; }

  /* The cheapest machine at full load, alone, and the cheapest API at its batch price. */
  function batch(found, question) {
    var millions = question.count * tokens(question) / MILLION;
    var places = [["on ", function (one) { return one.full; }, function (one) { return one.plan && !one.plan.reserved; }],
      ["from ", function (one) { return one.mean * (1 - one.api.batch_percent / 100); }, function (one) { return one.api; }]];
    var ways = places.map(function (place) {
      var best = found.filter(place[2]).sort(function (one, other) { return place[1](one) - place[1](other); })[0];
      if (!best) { return ""; }
      var cost = money(millions * place[1](best), (best.api || best.plan).currency) + " " + place[0];
      return cost + (best.api ? best.api.name + (best.api.batch_percent ? " as a batch" : "") :
        "1 × " + best.decoder.name + " in " + duration(question.count * best.capacity.request));
    });
    return question.count.toLocaleString("en") + " requests as a batch: " + ways.filter(Boolean).join(", or ") + ".";
  }

  /* Each machine once, at its cheapest plan. */
  function cheapest(found) {
    var seen = {};
    return found.filter(function (one) {
      var name = one.api ? "" : one.decoder.name + one.decoder.precision, first = !seen[name];
      seen[name] = !one.api;
      return first;
    });
  }

  function show(form, place, data, shared) {
    var question = asked(form), found = cheapest(offers(data, question, shared));
    var titles = ["Machine or API", "A million tokens", "Machines", "Most requests/s of a machine", "First token", "Between tokens"];
    var rows = found.map(function (one) { return row(form, one); });
    place.replaceChildren.apply(place, [verdict(data, found, question)].concat(rows.length ? [shown.table(titles, rows, 7)] : []));
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

  /* An address may contain anything: a field accepts only values that a reader could enter. */
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
    var shared = await shown.loaded(new URL(form.dataset.ecShared, location.href).href, "epochcostTokens");
    recall(form);
    show(form, place, data, shared);
    form.addEventListener("input", function () { show(form, place, data, shared); remember(form); });
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

  window.epochcostTokens = { offers: offers, untimed: untimed };
  if (window.document$) { window.document$.subscribe(start); } else { start(); }
})();
