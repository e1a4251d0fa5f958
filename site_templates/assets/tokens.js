/* The cost of a million tokens at the reader's traffic, on a decoder's page, by the programs of
   report/traffic.py. */
(() => {
  "use strict";

  const MILLION = 1e6, MONTH = 730 * 3600; // seconds of a billed month
  const { cell, duration, element, fold, loaded, money, noted, percent, rounded, small, table } = window.epochcostShown;
  const { answers } = window.epochcostBill;

  /* Reserved plans are paid for their whole term; they are listed after plans paid by use. */
  function reserved(offer) { return Boolean(offer.plan?.reserved); }

  function tokens(question) { return question.prompt + question.output; }

  /* The number of sequences with the most requests within the bounds; undefined without any. */
  function best(decoder, usage, question) {
    return decoder.capacities.map(
      ({ sequences, program }) => ({ sequences, ...answers(program, usage) })
    ).filter(
      ({ timed, first, token }) => timed && first <= question.first && token <= question.token
    ).sort((one, other) => one.request - other.request)[0];
  }

  /* Predicted machines, each with the copies and sequences of the most requests within the bounds. */
  function predicted(data, usage, question, shared) {
    const kept = {};
    (data.timings || []).forEach(timing => timing.step.forEach((step, power) => {
      const sequences = 2 ** power, alone = timing.step[0];
      const phases = answers(shared.capacity, { sequences, step, alone, room: timing.room, ...timing.phases, ...usage });
      if (sequences > phases.fitting || phases.first > question.first || phases.between > question.token) { return; }
      Object.entries(timing.machines).forEach(([machine, copies]) => {
        const copy = { sequences, copies }, whole = answers(shared.request, { ...phases, ...copy, ...usage }).request;
        const request = end => answers(shared.request, {
          first: phases.first * timing.spread[end], token: phases.token * timing.spread[(power ? 4 : 2) + end], ...copy, ...usage
        }).request;
        if (kept[machine] && kept[machine].request <= whole) { return; }
        kept[machine] = {
          sequences, first: phases.first, token: phases.between, request: whole,
          ends: () => ({ request_low: request(0), request_high: request(1) }),
          software: timing.software, precision: timing.precision
        };
      });
    }));
    return Object.entries(kept).map(([machine, capacity]) => ({
      decoder: { machine, precision: capacity.precision, software: capacity.software, ...shared.machines[machine] },
      capacity: { ...capacity, ...capacity.ends() }
    }));
  }

  /* Every machine and plan within the bounds, and every API, cheapest first. */
  function offers(data, question, shared) {
    const usage = { rate: question.rate, prompt: question.prompt, output: question.output, share: question.cached || 0, hour: 0, api_request: 0 };
    const apis = data.apis.map(api => ({ api, ...answers(api.program, usage) })).map(
      cost => ({ ...cost, low: cost.mean, high: cost.mean })
    ).sort((one, other) => one.mean - other.mean);
    if (apis.length) { usage.api_request = apis[0].request; }
    const measured = data.decoders.map(decoder => ({ decoder, capacity: best(decoder, usage, question) }));
    const machines = [...measured.filter(({ capacity }) => capacity), ...predicted(data, usage, question, shared)];
    return [...apis, ...machines.flatMap(offer => offer.decoder.plans.map(plan => ({
      plan, rate: question.rate, ...offer,
      ...answers(shared.cost, { ...usage, hour: plan.hour, ...offer.capacity })
    })))].sort((one, other) =>
      reserved(one) - reserved(other) || one.mean - other.mean || (one.full || 0) - (other.full || 0)
    );
  }

  function questionOf(form) {
    const number = (name, otherwise) => window.epochcostForms.number(form, name, otherwise ?? Number(form.elements[name].defaultValue));
    return {
      context: Number(form.dataset.ecContext), rate: number("requests"), prompt: number("prompt"), output: number("answer"), count: number("count", 0),
      cached: number("cached", 0) / 100, first: number("first", Infinity) / 1000, token: number("token", Infinity) / 1000
    };
  }

  /* The cost of a month at a cost of a million tokens. */
  function monthly(cost, question) { return cost * question.rate * MONTH * tokens(question) / MILLION; }

  function row(form, offer, question, { shapes }) {
    const made = element("tr"), { api, plan, decoder, capacity } = offer, place = api || plan;
    const amount = value => money(value, place.currency);
    const spread = offer.low === offer.high ? "" : `${amount(offer.low)} to ${amount(offer.high)}`;
    cell(made, api ? noted(api.name, `price of ${api.as_of}`) : noted(
      element("a", decoder.name, { href: `${form.dataset.ecRoot}machines/${decoder.machine}.html` }),
      `${kind(offer, shapes)}; ${decoder.software}, ${decoder.precision}; ${priceOf(offer)}`
    ));
    cell(made, noted(element("strong", amount(offer.mean)), spread), true, offer.mean);
    cell(made, [amount(monthly(offer.mean, question))], true, offer.mean);
    if (api) { return made; }
    const most = 1 / capacity.request;
    cell(made, noted(rounded(offer.machines, 15), `${percent(offer.rate / most / offer.machines)} busy`), true, offer.machines);
    cell(made, [rounded(most, 3)], true, most);
    [capacity.first, capacity.token].forEach(time => cell(made, [duration(time)], true, time));
    return made;
  }

  /* The rates above which a machine is cheaper than the cheapest API, and surely so; empty without machines or APIs. A
     machine may be busy for the share ``busiest`` of the time. */
  function turn(listed, busiest) {
    const rival = listed.find(offer => offer.api), own = listed.filter(offer => offer.plan && !reserved(offer));
    if (!own.length || !rival?.request) { return ""; }
    const turned = own.filter(offer => offer.turn > 0).sort((one, other) => one.turn - other.turn);
    const saves = offer => offer.full_high / busiest < rival.mean, [first] = turned;
    const crossings = first && saves(first) ? [first] : [first, turned.find(saves)].filter(Boolean);
    const sentence = offer => {
      const [low, mean, high] = [offer.full_low, offer.full, offer.full_high].map(cost => cost / busiest);
      const amount = value => money(value, offer.plan.currency), ends = low === high ? "" : ` (${amount(low)} to ${amount(high)})`;
      const unsure = mean < 0.9 * rival.mean ? "probably costs less than" : "costs about as much as";
      return ` ${offer.decoder.name} ${saves(offer) ? "costs less than" : unsure} the cheapest API if each ` +
        `machine serves at least ${rounded(offer.turn, 2)} requests/s and is at most ${percent(busiest)} busy: ${amount(mean)} a million tokens${ends}.`;
    };
    return crossings.map(sentence).join("") || ` The cheapest API is predicted to cost less than any machine with a list price that is at most ${percent(busiest)} busy.`;
  }

  /* The longest timed lengths if they are why no measured machine is offered; else empty. */
  function untimed({ decoders }, listed, question) {
    if (!decoders.length || listed.some(({ decoder }) => decoders.includes(decoder))) { return ""; }
    const phases = [["prefill", "prompts", question.prompt], ["decode", "contexts", question.prompt + question.output / 2]];
    const late = phases.find(([phase, , length]) => decoders.every(({ longest }) => length > longest[phase]));
    if (!late) { return ""; }
    const [phase, noun, length] = late, longest = Math.max(...decoders.map(decoder => decoder.longest[phase]));
    return ` Measured machines are left out: ${noun} were timed up to ${rounded(longest, 9)} tokens; yours has ${rounded(length, 9)}.`;
  }

  /* Why no machine is offered; empty if one is. */
  function machineless(data, listed, question) {
    if (listed.some(({ plan }) => plan)) { return ""; }
    const bounded = isFinite(Math.min(question.first, question.token));
    return `No machine has a time ${bounded ? "within these bounds " : ""}for prompts and answers of these lengths.${untimed(data, listed, question)}` +
      (bounded && listed.length ? " No price list states how fast an API answers." : "");
  }

  /* Paragraphs: the cheapest offer, the cheapest one of the other kind, and where both cost the same. */
  function verdict(data, offered, question, { most_busy: busiest, shapes }) {
    const words = element("p", "", { className: "ec-verdict" }), listed = cheapest(offered), [first] = listed;
    const none = machineless(data, listed, question), total = tokens(question);
    if (!first) {
      words.append(total > question.context ?
        `The model takes at most ${rounded(question.context, 9)} tokens, prompt and answer together; yours have ${rounded(total, 9)}.` : none);
      return [words];
    }
    const other = listed.find(offer => Boolean(offer.api) !== Boolean(first.api) && !reserved(offer));
    words.append(element("strong", month(first, question)), ` ${place(first, shapes)}.`);
    const next = (other ? ` ${other.api ? "The cheapest API" : "Self-hosting"}: ${month(other, question)}, ${place(other, shapes)}.` : "") +
      confirmed(offered, first.api ? other || first : first, question);
    const rest = (none || turn(listed, busiest) + untimed(data, listed, question)) + (question.count ? ` ${batch(listed, question)}` : "");
    return [words, ...[next, rest].filter(Boolean).map(text => element("p", text.trim()))];
  }

  /* The cost of a month; whole machines are billed, so that its low end may be the usual cost. */
  function month({ api, plan, capacity, machines, low, mean, high }, question) {
    const amount = cost => money(monthly(cost, question), (api || plan).currency), usual = `${amount(mean)} a month`;
    if (low === high) { return usual; }
    const more = `${amount(high)} if it takes ${rounded(Math.round(machines * high / mean), 15)} machines`;
    return `${usual} (${low === mean ? more : `${amount(low)} to ${amount(high)}${capacity.ends ? " in nine of ten cases" : ""}`})`;
  }

  /* The cheapest machine at a price without doubts, if the first one has doubts. */
  function confirmed(offered, { plan }, question) {
    const sure = plan?.unconfirmed && offered.find(offer => offer.plan && !reserved(offer) && !offer.plan.unconfirmed);
    return sure ? ` At a confirmed price: ${month(sure, question)}, for ${rounded(sure.machines, 15)} × ${sure.decoder.name}, price of ${sure.plan.as_of}.` : "";
  }

  /* How the time of a machine is known, with the mark that charts draw for it. */
  function kind({ plan, capacity }, shapes) {
    const known = capacity.ends ? "predicted" : "measured";
    return `${shapes[plan.assumed ? `${known}, price assumed` : known]} ${known}`;
  }

  /* The plan of an offer with the day of its price, and what is not sure about the price. */
  function priceOf({ api, plan }) {
    if (api) { return `price of ${api.as_of}`; }
    const doubts = [plan.assumed ? "assumed" : "", plan.unconfirmed ? `${plan.unconfirmed} not confirmed` : ""].filter(Boolean);
    return `${plan.name}, price of ${[plan.as_of, ...doubts].join(", ")}`;
  }

  /* The name of an API, or the number of machines with their load; and the cost of a million tokens. */
  function place(offer, shapes) {
    const { api, plan, decoder, capacity, machines, rate, mean } = offer, million = `${money(mean, (api || plan).currency)} a million tokens`;
    if (api) { return `from ${api.name}: ${million} (${priceOf(offer)})`; }
    return `for ${rounded(machines, 15)} × ${decoder.name} in ${decoder.precision}, ${percent(rate * capacity.request / machines)} busy: ` +
      `${million} (${kind(offer, shapes)}; ${priceOf(offer)})`;
  }

  /* The cheapest machine at full load, alone, and the cheapest API at its batch price. */
  function batch(listed, question) {
    const millions = question.count * tokens(question) / MILLION;
    const least = (able, cost) => listed.filter(able).sort((one, other) => cost(one) - cost(other)).slice(0, 1);
    const batched = ({ mean, api }) => mean * (1 - api.batch_percent / 100);
    const digits = (cost, { ends }) => ends && cost >= 100 ? Number(cost.toPrecision(3)) : cost; // as on other pages
    const ways = [
      ...least(offer => offer.plan && !reserved(offer), ({ full }) => full).map(({ full, plan, decoder, capacity }) =>
        `${money(digits(millions * full, capacity), plan.currency)} on 1 × ${decoder.name} in ${duration(question.count * capacity.request)}`),
      ...least(({ api }) => api, batched).map(offer =>
        `${money(millions * batched(offer), offer.api.currency)} from ${offer.api.name}${offer.api.batch_percent ? " as a batch" : ""}`)
    ];
    return `${question.count.toLocaleString("en")} request${question.count === 1 ? "" : "s"} as a batch: ${ways.join(", or ")}.`;
  }

  /* Every API, and each machine once, at its cheapest plan. */
  function cheapest(listed) {
    const seen = new Set(), name = ({ decoder }) => decoder.name + decoder.precision;
    return listed.filter(offer => offer.api || (!seen.has(name(offer)) && seen.add(name(offer))));
  }

  /* The machines in a table, and the APIs in one that is closed if there are machines too. */
  function lists(form, listed, question, shared) {
    const costs = ["A million tokens", "A month"], own = ["Machines", "Most requests/s of a machine", "First token", "Between tokens"];
    const rows = able => listed.filter(able).map(offer => row(form, offer, question, shared));
    const machines = rows(({ plan }) => plan), apis = rows(({ api }) => api);
    const named = apis.length ? [fold(`APIs at this traffic: ${apis.length}`, table(["API", ...costs], apis, 7))] : [];
    if (!machines.length) { named.forEach(part => { part.open = true; }); }
    const note = small(`Enough machines for each to be at most ${percent(shared.most_busy)} busy.`);
    return [...(machines.length ? [note, table(["Machine", ...costs, ...own], machines, 7)] : []), ...named];
  }

  function show(form, data, shared) {
    const question = questionOf(form), offered = tokens(question) > question.context ? [] : offers(data, question, shared);
    form.nextElementSibling.replaceChildren(...verdict(data, offered, question, shared), ...lists(form, cheapest(offered), question, shared));
    window.epochcostTables.begin();
  }

  window.epochcostTokens = { offers, turn, untimed };
  window.epochcostForms.onForms("[data-ec-tokens]", async form => {
    const folder = new URL(form.dataset.ecTokens, location.href).href, model = form.dataset.ecModel;
    const shared = await loaded(`${folder}.js`, "epochcostTokens");
    const data = await loaded(`${folder}/${model}.js`, `epochcost-tokens/${model}`);
    return async () => {
      const precision = form.elements.precision.value, name = `${model}/${precision}`;
      const timings = await loaded(`${folder}/${name}.js`, `epochcost-tokens/${name}`);
      if (form.elements.precision.value === precision) { show(form, { ...data, timings }, shared); }
    };
  }, []);
})();
