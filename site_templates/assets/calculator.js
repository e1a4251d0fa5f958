/* The calculator's page: a verdict above a list of machines, for the question of its form (ways.js). */
(() => {
  "use strict";

  const { cell, duration, element, fold, loaded, money, noted, percent, rounded, small } = window.epochcostShown;
  const { AS_FAST, bill, candidates, interruptions, timed } = window.epochcostWays, odds = window.epochcostOdds;

  const MOST_TOKENS = 1e7; // as in the form
  const UNTIMED = "No time of this job on your machine is known or predicted; the machine's memory may be too small.";

  /* The period of a total. */
  function run(question) { return question.job === "batch" ? "batch" : "training"; }

  function per(question) {
    if (question.job === "serve") { return "a month"; }
    return { once: "in all", year: "a year" }[question.every] || "a month";
  }

  /* Predicted amounts from 100 upwards have three digits, as on other pages. */
  function amount(value, { plan, timing }) {
    return money(timing.kind === "predicted" && value >= 100 ? Number(value.toPrecision(3)) : value, plan.currency);
  }

  function hours(value, digits) {
    const text = rounded(value, digits);
    return `${text} hour${text === "1" ? "" : "s"}`;
  }

  /* An amount as the reader entered it. */
  function exactly(value, currency) {
    return new Intl.NumberFormat("en-US", { style: "currency", currency, maximumSignificantDigits: 15 }).format(value);
  }

  /* A low end below a thousandth of the mean time is no bound. */
  function spread({ low, high, timing: { seconds } }, key, words) {
    if (words(low[key]) === words(high[key])) { return ""; }
    return odds.bounded(seconds[0], seconds[1]) ? `${words(low[key])} to ${words(high[key])}` : `at most ${words(high[key])}`;
  }

  function badge({ timing, plan }, shapes, page) {
    const mark = timing.kind + (plan.assumed ? ", price assumed" : "");
    const className = `ec-badge ec-${timing.kind}${plan.assumed ? " ec-assumed" : ""}`;
    const shown = element("span", `${shapes[mark]}\u00a0${mark}`, { className });
    if (timing.kind !== "predicted") { return shown; }
    const link = element("a", "", { href: page });
    link.append(shown);
    return link;
  }

  function range(way, key, words) {
    return noted(element("strong", words(way.mean[key])), spread(way, key, words));
  }

  function interrupted(question, plan) {
    const rate = interruptions(question, plan);
    if (plan.group !== "spot") { return ""; }
    return rate === null ? ", interruptions unknown" : `, ${rate} interruptions an hour`;
  }

  /* The probability of being the cheapest, the cost over that of the choice, and the limits. */
  function chances(way, best) {
    const facts = [odds.multiple(way, best), odds.limits(way)].filter(Boolean);
    const wins = element("strong", way.wins === undefined ? "—" : odds.scenarios(way.wins));
    return [wins, ...facts.flatMap(fact => [element("br"), small(fact)])];
  }

  function row(form, question, way, shapes, best) {
    const made = element("tr", "", { className: way.misses && "ec-missed" }), { plan, timing, mean } = way;
    const words = value => amount(value, way), serves = question.job === "serve";
    const machine = element("a", timing.name, { href: `${form.dataset.ecRoot}machines/${timing.machine}.html` });
    const region = plan.region && `, ${plan.region}`, missed = way.misses && `; ${way.misses}`;
    const doubt = plan.unconfirmed && `; ${plan.unconfirmed} unconfirmed`;
    cell(made, noted(machine, `${plan.name}${region}, ${plan.as_of}${interrupted(question, plan)}${doubt}${missed}`));
    if (!question.single || serves) { cell(made, range(way, "total", words), true, mean.total); }
    cell(made, range(way, "each", words), true, mean.each);
    cell(made, range(way, "seconds", duration), true, mean.seconds);
    if (serves) { cell(made, [`${rounded(mean.machines, 15)} × `, small(`${percent(mean.load)} busy`)], true, mean.machines); }
    cell(made, chances(way, best), true, way.wins || 0);
    const precision = timing.precision && `, ${timing.precision}${timing.precision === "mixed" ? " precision" : ""}`;
    cell(made, noted(badge(way, shapes, form.dataset.ecRoot + question.compared), `${timing.software}${precision}, batch ${timing.batch}${way.apart && `; ${way.apart}`}`));
    return made;
  }

  function table(form, question, ways, shapes) {
    const total = question.single ? [] : [`Cost ${per(question)}`];
    const costs = question.job === "serve" ? ["Cost a month", "A million", "Answer within", "Machines"] :
      [...total, `A ${run(question)}`, "Time"];
    const rows = ways.map(way => row(form, question, way, shapes, ways[0]));
    return window.epochcostShown.table(["Machine", ...costs, "Cheapest in", "Evidence"], rows, 25); // ten on paper
  }

  function lines(question, { mean, plan }) {
    const list = element("ul");
    list.append(...mean.lines.filter(line => line.amount !== 0).map(
      line => element("li", `${line.label}: ${money(line.amount, plan.currency)}`)
    ));
    return fold(`The bill of ${question.job === "serve" ? "a month" : `one ${run(question)}`}, line by line`, list, " ec-printed");
  }

  /* The cost of a request relative to one on a machine that is always busy. */
  function idle(mean) {
    const times = 1 / mean.load;
    return times < 1.1 ? "" : ` Each request costs ${rounded(times, 2)} times as much as on a machine that is always busy.`;
  }

  function answer(question, way) {
    const { mean, timing } = way, words = element("p", "", { className: "ec-verdict" }), { single } = question;
    const total = amount(mean.total, way), each = amount(mean.each, way), time = duration(mean.seconds);
    const period = single && per(question) === "in all" ? "" : ` ${per(question)}`;
    const parallel = mean.machines > 1 ? ` It takes ${rounded(mean.machines, 15)} machines in parallel.` : "";
    const weekly = way.mine && question.job !== "serve" ? `, if it is in use ${hours(168 * mean.used, 3)} a week in all` : "";
    const ends = spread(way, "total", value => amount(value, way)), between = ends && ` (${ends}${timing.kind === "predicted" ? " in 9 of 10 cases" : ""})`;
    words.append(element("strong", total + period), question.job === "serve" ?
      `${between} for ${rounded(mean.machines, 15)} × ${timing.name}, ${percent(mean.load)} busy: ${each} a million requests, 99 % answered within ${time}.${idle(mean)}` :
      `${between} on ${timing.name}${single ? "" : `: ${each} a ${run(question)}`}, in ${time}${weekly}.${parallel}`);
    return words;
  }

  /* The question in words, with the values of empty fields. */
  function asked({ dataset: { ecRoot: root }, elements: { model, prices } }, question) {
    const { job, runs, every, limit, budget, page } = question, number = value => rounded(value, 15);
    const noun = job === "batch" && question.tokens ? "document" : "example";
    const sizes = [[question.examples, noun], [question.tokens, "token"], [job === "train" ? question.epochs : 0, "epoch"]];
    const size = sizes.filter(([count, name]) => count > (name === noun && job !== "batch" ? 1 : 0)).map(
      ([count, name]) => `${number(count)} ${name}${count === 1 ? "" : "s"}${name === noun && question.dataset ? ` of ${question.dataset}` : ""}`
    ).join(" × ");
    const parts = job === "serve" ? [`${number(question.rate)} request${question.rate === 1 ? "" : "s"} a second, ${hours(question.hours, 15)} a day`] : [size];
    if (job !== "serve" && (runs > 1 || every !== "once")) {
      parts.push((runs > 1 ? `${number(runs)} times` : "once") + (every === "once" ? "" : ` a ${every}`));
    }
    if (isFinite(limit)) { parts.push(`within ${duration(limit)}`); }
    if (isFinite(budget)) { parts.push(`for at most ${exactly(budget, question.currency)} ${per(question)}`); }
    const whose = question.own ? "on your own machine" : `prices: ${prices.selectedOptions[0].textContent}`;
    const made = element("p", `: ${parts.join(", ")}; ${whose}.`);
    made.prepend(element("a", model.selectedOptions[0].textContent, { href: `${root}${page}` }));
    return made;
  }

  /* What a predicted time follows from. */
  function basis({ timing }) {
    if (timing.kind !== "predicted") { return ""; }
    return timing.extrapolated ? ` No published training ran on ${timing.extrapolated}: its time is extrapolated from other chips.` :
      " The time is predicted from published times of other models and machines.";
  }

  /* What a batch costs on a machine that is rented for it alone, and what the cost leaves out. */
  function alone(way, { tokens }) {
    const { mean, plan } = way;
    const billed = /billing/.test(plan.unconfirmed) ? "we assume that it is billed" : "it is billed";
    const rented = plan.bill && plan.billing && ` If you rent the machine for this batch alone, ${billed} ${plan.billing}: ` +
      `at least ${amount(bill(plan.bill, mean.usage, {}).total, way)}.`;
    const left = ` Not included: the time to read ${tokens ? "and tokenize the texts" : "the examples"} and to store the results.`;
    return (rented || "") + left + (tokens ? " We list no prices of APIs that embed or classify." : "");
  }

  /* The parts of a price that its source does not confirm, and the cheapest way at a confirmed price. */
  function unconfirmed({ plan, misses }, ways) {
    const sure = ways.find(way => !way.apart && !way.plan.unconfirmed && way.misses === misses);
    return plan.unconfirmed && `The source of this price, read on ${plan.as_of}, does not confirm its ${plan.unconfirmed}: ask the provider before you rent.` +
      (sure ? ` The cheapest at a confirmed price: ${amount(sure.mean.total, sure)} on ${sure.timing.name}, price of ${sure.plan.as_of}.` : "");
  }

  /* A note on billed time that a training does not use, if it costs much; and on time that is left out. */
  function timeNotes(way, { failed }) {
    const { mean } = way, lines = mean.lines.filter(({ label }) => label.endsWith("unused"));
    const unused = lines.reduce((sum, line) => sum + line.amount, 0) / (1 - failed);
    const part = unused > 0.03 * mean.each ? ` ${amount(unused, way)} of each training's cost is for billed time that is not used.` : "";
    return `${part} Not included: starting the program, loading libraries, and waiting for data that are read more slowly than the machine computes.`;
  }

  function certainty(way, question) {
    const { plan } = way, exact = way.exact ? "No range: the source states a single time. " : "";
    return small(exact + odds.sureness(way, question.a || question.b) +
      `Plan: ${plan.name}${plan.unconfirmed ? "" : `, price of ${plan.as_of}`}${plan.committed ? ", paid for its whole term, used or not" : ""}.${{ train: timeNotes, batch: alone }[question.job]?.(way, question) || ""}${basis(way)}${lengths(question)}`);
  }

  /* What is known of the model's longest text. */
  function lengths({ context, cut, doubtful, longest, tokens, usual }) {
    if (longest === context && longest) { return ` The model takes texts of up to ${rounded(longest, 9)} tokens.`; }
    if (longest) { return ` Texts of up to ${rounded(longest, 9)} tokens are priced here; for longer ones, memory decides: use epochcost finetune --tokens.`; }
    if (cut) { return ` The model reads only the first ${rounded(tokens, 9)} tokens of a text.`; }
    return doubtful ? ` The times are of texts of ${rounded(usual, 9)} tokens: whether the model accepts longer ones is not checked.` : "";
  }

  /* Whether an answer keeps the limits of the question; empty without limits. */
  function kept(way) {
    const limits = odds.limits(way), chance = Math.min(...Object.values(way.kept));
    const fits = chance >= 0.9 ? "It fits" : chance >= 0.1 ? "It may not fit" : "It does not fit";
    return limits && [element("p", `${fits}: ${limits} scenarios.`)];
  }

  /* What the bill of an owned machine counts. */
  function counted(form, question, { plan, mean }) {
    const made = small(""), { used } = mean, share = hours(168 * used, 3);
    const href = `${form.dataset.ecRoot}explanation/bills.html#owned-machines`;
    if (plan.own) {
      made.append(question.job === "serve" && used === question.day ?
        ` Counted: the whole machine, in use ${share} a week (` :
        ` Counted: the job's hours, and its share of the hours without use, if the machine is in use ${share} a week in all (`,
      element("a", "owned machines", { href }), "). ", `We assume that it is kept for ${rounded(plan.share.inputs["owned.years"], 3)} years and ` +
      `draws ${rounded(plan.share.inputs["owned.power_watts"], 3)} W in use${plan.share.inputs.vcpus ? " per vCPU" : ""}; the bill counts the energy of idle hours too.`);
    }
    return made;
  }

  /* The cheapest of the fastest ways that fit, unless it is the cheapest of all. */
  function fastest(ways, best) {
    const fitting = ways.filter(way => !way.apart && way.misses === best.misses);
    const least = Math.min(...fitting.map(way => way.mean.seconds)), fast = fitting.filter(way => way.mean.seconds < AS_FAST * least);
    const way = fast.reduce((first, other) => other.mean.total < first.mean.total ? other : first);
    return way === best ? "" :
      ` Fastest: ${duration(way.mean.seconds)} on ${way.timing.name}, for ${amount(way.mean.each, way)}.`;
  }

  /* From which use a week the reader's machine costs less than ``best``: its cost is energy + price / use. */
  function even(question, best, costAt) {
    const [always, half] = [1, 0.5].map(costAt), price = half - always;
    if (question.job === "serve" || !(price > 0)) { return ""; }
    const share = price / (best.mean.total - always + price);
    return share > 0 && share <= 1 ? ` Your machine costs less than this if it is used at least ${hours(168 * share, 2)} a week.` :
      " Your machine costs more than this, however many hours it is used.";
  }

  /* The cheapest machine beside the reader's own. */
  function beside(question, ways, costAt) {
    const best = ways.find(way => !way.apart && !way.mine);
    return best ? ` The ${best.misses ? "closest" : "cheapest"} of the others: ${amount(best.mean.total, best)} on ${best.timing.name}, ` +
      `${question.job === "serve" ? "99 % answered with" : ""}in ${duration(best.mean.seconds)}; ${best.plan.name}, price of ${best.plan.as_of}` +
      `${best.plan.unconfirmed && `, ${best.plan.unconfirmed} not confirmed`}.${even(question, best, costAt)}` : "";
  }

  /* A cheaper answer in other software, and why it is not the first one. */
  function lower(best, stacks, form) {
    const other = stacks.map(list => list.find(way => !way.apart)).find(
      way => way && !way.misses && way.mean.total < best.mean.total
    );
    return other ? ` With ${form.elements.software.querySelector(`[value="${other.timing.stack}"]`).textContent}: ${amount(other.mean.total, other)} on ` +
      `${other.timing.name}. This is less, but the time is less sure.` : "";
  }

  function verdict(question, ways, shapes, stacks, form, costAt) {
    const mine = ways.find(way => way.mine), best = mine || ways.find(way => !way.apart), sure = element("p");
    if (!best) {
      const spot = question.prices !== "spot" ? "" : " Providers do not state how often they interrupt spot machines: " +
        (question.job === "train" ? "to rank these, enter “Spot interruptions an hour” under “Your own assumptions”." : "choose another kind of price.");
      return [element("p", question.own ? UNTIMED : ways.length ? `No price of this kind can be compared; the list below says why.${spot}` :
        "No machine has both a time and a price of this kind for this job.", { className: "ec-verdict" })];
    }
    sure.append(badge(best, shapes, form.dataset.ecRoot + question.compared), " ", certainty(best, question), counted(form, question, best));
    sure.append(small(mine ? beside(question, ways, costAt) : (question.job === "serve" ? "" : fastest(ways, best)) + lower(best, stacks, form)));
    const closest = best.misses && !mine ? [element("p", "No machine is within the limits. The closest:")] : [];
    if (question.own && !mine) { closest.unshift(element("p", UNTIMED)); }
    const doubt = unconfirmed(best, ways);
    return [
      asked(form, question), ...closest, answer(question, best), ...kept(best), ...(doubt ? [element("p", doubt)] : []), sure, lines(question, best)
    ];
  }

  /* Which of two has less of something, and by how much. */
  function less(way, other, key, [equal, compared], words) {
    const [first, second] = way.mean[key] <= other.mean[key] ? [way, other] : [other, way];
    const factor = second.mean[key] / first.mean[key];
    const [little, much] = [first, second].map(side => words(side.mean[key], side));
    if (!(factor >= 1.05)) { return `Both ${equal}: ${little} vs. ${much}. `; }
    const times = isFinite(factor) ? `${rounded(factor, 2)} times ` : "";
    return `${first.timing.name} is ${times}${compared}: ${little} vs. ${much}` +
      `${odds.beside(first, second, key, compared)}. `;
  }

  function versus(question, ways) {
    const [a, b] = [question.a, question.b].map(id => ways.find(way => way.timing.machine === id));
    const words = element("p", "", { className: "ec-verdict" });
    if (!a || !b || a === b) {
      words.append("Choose two different machines that have a time and a price of this kind.");
    } else {
      const same = a.plan.currency === b.plan.currency;
      words.append(element("strong", same ? less(a, b, "total", ["cost about the same", "cheaper"], amount) : ""),
        less(a, b, "seconds", ["take about the same time", "faster"], duration));
    }
    return [words];
  }

  function show(form, place, data, shared) {
    const question = window.epochcostWays.question(form, data, shared), { shapes } = shared;
    /* The best known software that has an answer. */
    const stacks = question.stacks.map(stack => candidates(question, data, shared, stack));
    const ways = stacks.find(list => list.some(way => way.mine)) || stacks.find(list => list.some(way => !way.apart)) || stacks[0] || [];
    const two = question.a && question.b, listed = two ? ways : ways.filter(way => !way.apart);
    const apart = two ? [] : ways.filter(way => way.apart);
    /* The cost of one run at any use, as if no other run followed. */
    const costAt = use => candidates({ ...question, every: "once", assumed: { ...question.assumed, "owned.utilisation": use } }, data, shared, ways[0].timing.stack)
      .find(way => way.mine).mean.total;
    odds.weigh(listed, data.draws, { seconds: question.limit, total: question.budget }, two);
    const open = place.querySelector("details.ec-printed")?.open;
    form.elements.budget.labels[0].firstChild.textContent = `Budget (${form.dataset.ecSymbol} ${per(question)}) `;
    place.firstElementChild.replaceChildren(...(two ? versus(question, ways) : verdict(question, ways, shapes, stacks, form, costAt)));
    place.querySelectorAll("details.ec-printed").forEach(part => { part.open = open; });
    place.lastElementChild.replaceChildren(...(listed.length ? [table(form, question, listed, shapes)] : []),
      ...(apart.length ? [fold(
        `Not compared: ${apart.length} with an assumed price, without a known rate of interruptions, or in another currency`,
        table(form, question, apart, shapes)
      )] : []));
    window.epochcostTables.begin();
  }

  /* List the models that have times for the job. At first, the address's model decides the job. */
  function match({ elements: { job, model } }, state) {
    const { offer } = window.epochcostForms, models = Array.from(model.options);
    const does = ({ dataset }, name) => dataset.ecJobs.split(" ").includes(timed(name));
    if (state.has("model")) { offer(job, name => does(model.selectedOptions[0], name)); }
    offer(job, name => models.some(option => does(option, name)));
    offer(model, key => does(models.find(option => option.value === key), job.value));
  }

  /* Show the machines with a time, and the fields that the job needs. */
  function settle(form, data, state, shared) {
    const job = form.elements.job.value, lacks = {
      examples: job === "train" && !data.examples, tokens: !data.tokens, interruptions: !["spot", ""].includes(form.elements.prices.value)
    };
    const names = new Map(data[timed(job)].map(({ machine, name }) => [machine, name]));
    const sorted = Array.from(names).sort((one, other) => one[1].localeCompare(other[1]));
    ["a", "b"].forEach(side => {
      const field = form.elements[side], value = state.get(side) || field.value;
      const chosen = sorted.find(entry => entry.includes(value));
      field.replaceChildren(...[["", "any"], ...sorted].map(([id, name]) => element("option", name, { value: id })));
      field.value = chosen ? chosen[0] : "";
    });
    form.querySelectorAll("details").forEach(part => {
      part.open ||= [...part.querySelectorAll("[name]")].some(({ name }) => state.has(name));
    });
    const plan = shared.machines[form.elements.own.value]?.plans.map(id => shared.plans[id]).find(({ own }) => own);
    const usual = {
      epochs: data.epochs, examples: job === "batch" ? 1e6 : data.examples, tokens: data.tokens,
      purchase: plan?.share.inputs["owned.purchase"], electricity: plan?.share.inputs["owned.electricity_per_kwh"],
      weekly: plan && 168 * plan.share.inputs["owned.utilisation"]
    };
    Object.entries(usual).forEach(([name, value]) => { form.elements[name].placeholder = value ?? ""; });
    form.elements.tokens.max = data.longest || MOST_TOKENS;
    form.querySelectorAll("[data-ec-job]").forEach(label => {
      label.hidden = !label.dataset.ecJob.split(" ").includes(job) || Boolean(lacks[label.control?.name]);
    });
  }

  async function renew(form, place, state) {
    match(form, state);
    const folder = new URL(form.dataset.ecCalculator, location.href).href, model = form.elements.model.value;
    const shared = await loaded(`${folder}plans.js`, "epochcostPlans");
    const published = await loaded(`${folder}${model}.js`, `epochcost/${model}`);
    if (form.elements.model.value !== model) { return; }
    const whole = job => published[job].map(timing => ({ ...shared.machines[timing.machine], ...timing }));
    const data = { ...published, train: whole("train"), serve: whole("serve") };
    settle(form, data, state, shared);
    show(form, place, data, shared);
  }

  window.epochcostForms.onForms("[data-ec-calculator]", async form => {
    const place = form.parentElement.querySelector(".ec-calculated");
    return state => renew(form, place, state);
  }, ["job", "model"]);
})();
