/* The calculator's bills: a question becomes a usage, every plan's program bills it, and each machine's
   cheapest ways are ranked. Names of the form's fields, each of which may be left out:

     model       id of a model, or published/ID of a published table
     job         train, batch (a number of examples) or serve
     runs every  number of trainings once (in all), or each day, week, month or year
     rate hours  requests a second, and the hours a day during which they come
     examples tokens   examples of a batch or of an epoch, and tokens of each
     deadline    hours for one run; within: milliseconds for 99 % of answers
     budget      a month, a year if every=year, or in all if every=once
     prices      on-demand, spot, committed, owned, or nothing for all list prices
     a b         ids of two machines to compare
     own         id of a machine of the reader's, bought for ``purchase``, used ``weekly`` hours
     epochs failed busy interruptions electricity: the reader's own assumptions */
(() => {
  "use strict";

  const HOUR = 3600, MILLION = 1e6;
  // Nobody pays more for a time that is shorter by less; as in ranking.py.
  const AS_FAST = 1.05;
  const { answers, run } = window.epochcostBill;

  /* The list of times that a job uses. */
  function timed(job) { return job === "train" ? "train" : "serve"; }

  /* A training is a job with a start and rounding, all else a share of a machine's hours. If a spot plan
     has no rate of interruptions, the reader's rate needs a program of its own. */
  function programOf(question, plan) {
    if (question.job !== "train") { return plan.share; }
    const rate = question.assumed["interruptions.rate_per_hour"];
    return rate > 0 && plan.interrupted ? plan.interrupted : plan.bill;
  }

  /* The question: times in seconds, shares from 0 to 1, money in the plan's currency. */
  function question(form, data, { currency, month_hours: monthHours }) {
    const number = (name, otherwise) => window.epochcostForms.number(form, name, otherwise);
    const { a, b, every, job, own: mine, prices, software } = form.elements, days = monthHours / 24;
    const batch = job.value === "batch", own = batch ? MILLION : data.examples, name = timed(job.value);
    const examples = own ? number("examples", own) : 1, epochs = number("epochs", data.epochs);
    const long = data.tokens && job.value !== "serve" ? number("tokens", data.tokens) : 0, tokens = Math.min(long, data.most_tokens || Infinity);
    const longer = tokens ? tokens / data.tokens : 1;
    const times = { once: 1, day: days, week: days / 7, month: 1, year: 1 / 12 }[every.value];
    const runs = number("runs", 1), period = every.value === "year" ? 12 : 1;
    return {
      job: job.value,
      timed: name,
      stacks: software.value ? [software.value] : data.stacks[name],
      prices: prices.value,
      currency,
      own: mine.value,
      paid: number("purchase", null),
      a: a.value,
      b: b.value,
      every: every.value,
      runs,
      times: runs * times,
      period, // months that the total is for
      single: runs * times * period === 1,
      examples,
      tokens,
      epochs,
      cut: long > tokens,
      doubtful: !data.most_tokens && tokens > data.tokens, // whether the model reads texts of this length
      usual: data.tokens,
      longest: data.longest, // texts that the times hold for, if not all
      context: data.context, // of a language model
      page: data.page, // of the model
      compared: data.compared || "explanation/predictions.html", // the page that compares predictions with the truth
      dataset: job.value === "train" && examples === own ? data.dataset : null,
      work: examples * longer * (batch ? 1 : epochs / (own || 1)),
      rate: number("rate", 10),
      hours: number("hours", 24),
      month: number("hours", 24) * days * HOUR,
      day: number("hours", 24) / 24,
      always: monthHours * HOUR, // seconds of a month
      limit: job.value === "serve" ? number("within", Infinity) / 1000 : number("deadline", Infinity) * HOUR,
      budget: number("budget", Infinity),
      failed: number("failed", 0) / 100,
      busy: number("busy", 70) / 100,
      assumed: {
        "interruptions.rate_per_hour": job.value === "train" ? number("interruptions", null) : null,
        "owned.electricity_per_kwh": number("electricity", null),
        "owned.utilisation": number("weekly", null) / 168 || null
      }
    };
  }

  /* The reader's own assumptions replace figures of plans that have them. */
  function bill(program, usage, assumed) {
    const better = Object.entries(assumed).filter(
      ([name, value]) => value !== null && Object.hasOwn(program.inputs, name)
    );
    return run(program, { ...usage, ...Object.fromEntries(better) });
  }

  /* The time of a token in the texts of a fine-tuning over that in texts of the usual length. In the longest
     texts it is ``timing.slower``, and unknown if they do not fit the machine's memory. */
  function slower({ longest, tokens, usual }, timing) {
    return longest && tokens > usual ? 1 + (timing.slower - 1) * (tokens - usual) / (longest - usual) : 1;
  }

  /* One training with its expected failures; a failure takes as long as a success. The trainings of a month, at least
     one, share the discount for its use. */
  function trained(question, timing, plan, seconds, programs) {
    const once = question.every === "once", runs = once || question.job === "batch" ? 1 : Math.max(1, question.times);
    // A batch takes a whole step, even if it is not full.
    const work = question.job === "batch" ? Math.max(1, question.work / timing.batch) : question.work * slower(question, timing);
    const usage = { seconds: seconds * work, vcpus: timing.vcpus, runs };
    const used = utilisation(question, plan, usage.seconds);
    const billed = bill(programOf(question, plan), usage, { ...question.assumed, "owned.utilisation": used });
    const lines = billed.lines.map(({ label, amount }) => ({ label, amount: amount / runs }));
    const elapsed = billed.elapsed_seconds / runs;
    const job = answers(programs.training, {
      total: billed.total / runs, elapsed, failed: question.failed, times: question.times
    });
    if (job.failures > 0) { lines.push({ label: "failed runs, expected", amount: job.failures }); }
    return { ...job, total: job.total * question.period, lines, usage, used, seconds: elapsed, machines: once ? 1 : job.machines };
  }

  /* The share of its life in which an owned machine is used: at least the hours of the question's own
     work. A run takes ``seconds``; one run alone says nothing about the use in other months. Plans of
     rented machines have no such input. */
  function utilisation({ job, day, every, times, failed, always, assumed }, plan, seconds) {
    const stated = assumed["owned.utilisation"] ?? plan.share?.inputs["owned.utilisation"];
    if (job === "serve") { return Math.max(stated, day); }
    const machines = every === "once" ? 0 : times * seconds / (1 - failed) / always;
    return Math.max(stated, machines / Math.ceil(machines) || 0);
  }

  /* Enough machines to keep each below the allowed load, for a month. */
  function served(question, timing, plan, seconds, programs) {
    const { rate, busy, month, assumed } = question, job = answers(programs.serving, { rate, seconds, batch: timing.batch, busy });
    const usage = { seconds: month, count: job.machines, vcpus: timing.vcpus };
    const used = utilisation(question, plan);
    const { lines, total } = bill(plan.share, usage, { ...assumed, "owned.utilisation": used });
    const costs = answers(programs.million, { total, rate, month });
    return { ...job, ...costs, lines, total, used, seconds: job.load < 1 ? job.seconds : Infinity };
  }

  /* Interruptions an hour, the reader's or the plan's; null if they are unknown. */
  function interruptions(question, plan) {
    return question.assumed["interruptions.rate_per_hour"] ?? plan.interruptions;
  }

  /* The reason why a figure cannot win; empty if it can. */
  function reserve(question, plan) {
    if (plan.currency !== question.currency) { return `price in ${plan.currency}`; }
    if (plan.committed && !question.prices) { return "paid for its whole term"; }
    if (interruptions(question, plan) === null) { return "unknown rate of interruptions"; }
    return plan.assumed && !(plan.own && (question.own || question.prices === plan.group)) ? "assumed price" : "";
  }

  function miss(question, mean) {
    if (mean.seconds > question.limit) { return "too slow"; }
    return mean.total > question.budget ? "over budget" : "";
  }

  function candidate(asked, timing, plan, programs) {
    const mine = timing.machine === asked.own && plan.own, { paid } = asked, units = plan.share?.inputs.vcpus ? timing.vcpus : 1;
    const bought = mine && paid !== null ? { "owned.purchase": paid / units, "owned.residual": 0 } : {};
    const question = { ...asked, own: mine, assumed: { ...asked.assumed, ...bought } };
    const price = question.job === "serve" ? served : trained;
    const [low, mean, high] = timing.seconds.map(seconds => price(question, timing, plan, seconds, programs));
    const shown = bought["owned.purchase"] === undefined ? plan : { ...plan, assumed: false };
    return { timing, plan: shown, mine, low, mean, high, apart: reserve(question, shown), misses: miss(question, mean) };
  }

  function better(way, other) {
    return Boolean(way.apart) - Boolean(other.apart) || Boolean(way.misses) - Boolean(other.misses) ||
      way.mean.total - other.mean.total || way.mean.seconds - other.mean.seconds;
  }

  /* Machines that miss the deadline come last: those about as fast as the fastest, the cheapest first, then the others. */
  function closest(ways) {
    const rank = ({ apart, misses }) => 3 * Boolean(apart) + ["", "over budget", "too slow"].indexOf(misses);
    const least = Math.min(...ways.filter(way => !way.apart).map(way => way.mean.seconds));
    const slow = ({ misses, mean }) => misses === "too slow" && mean.seconds >= AS_FAST * least ? mean.seconds : 0;
    return ways.sort((way, other) => rank(way) - rank(other) || slow(way) - slow(other) || better(way, other));
  }

  /* Each machine's cheapest way that fits, and its cheapest way that cannot win; best first. */
  function candidates(question, data, shared, stack) {
    const sides = [question.a, question.b], all = !sides.some(Boolean), best = new Map();
    const ways = data[question.timed].filter(
      timing => timing.stack === stack && (all || [...sides, question.own].includes(timing.machine))
    ).flatMap(timing => timing.plans.map(id => shared.plans[id]).filter(
      plan => programOf(question, plan) &&
        (plan.assumed || (plan.own && timing.machine === question.own) || ["", plan.group].includes(question.prices))
    ).map(plan => candidate(question, timing, plan, shared.jobs)));
    ways.filter(way => isFinite(way.mean.total)).sort(better).forEach(way => {
      const key = way.timing.name + (way.apart ? " apart" : "");
      if (!best.has(key)) { best.set(key, way); }
    });
    return closest(Array.from(best.values()));
  }

  window.epochcostWays = { AS_FAST, bill, candidates, interruptions, question, timed };
})();
