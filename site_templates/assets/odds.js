/* Odds of a choice by joint draws, as epochcost.analysis.odds and epochcost.predict.joint compute
   them: the same seeds and weights give the same draws here. Tests hold both to each other. */
(() => {
  "use strict";

  const DRAWS = 256, THOUSANDTHS = 1000, DEVIATIONS = 1.96, WIDEST = 1000;
  const LEAST = 1e-12, MOST = 1e300; // of values whose logarithm is taken
  const columns = {}; // of standard normals, by seed

  function uniform(counter) {
    let mixed = Math.imul(counter ^ counter >>> 16, 0x85ebca6b);
    mixed = Math.imul(mixed ^ mixed >>> 13, 0xc2b2ae35);
    return (((mixed ^ mixed >>> 16) >>> 0) + 0.5) / 4294967296;
  }

  /* An array with a value for each draw. */
  function each(value) { return Array.from({ length: DRAWS }, (_, draw) => value(draw)); }

  function clipped(value, low, high) { return Math.min(Math.max(value, low), high); }

  function normals(seed, column) {
    return columns[`${seed} ${column}`] ??= each(draw => {
      const counter = seed + 2 * (column * DRAWS + draw);
      return Math.sqrt(-2 * Math.log(uniform(counter | 0))) * Math.cos(2 * Math.PI * uniform(counter + 1 | 0));
    });
  }

  /* Whether the low end of an interval is a usable bound; a few scattered samples give no such end. */
  function bounded(low, mean) { return mean <= WIDEST * low; }

  /* Draws of the logarithm of a timing's seconds in units of their mean; ``made`` has the shifts and
     weights of predicted ones. */
  function draws({ seconds, seed, row: index }, made) {
    if (index === undefined) {
      const [low, mean, high] = seconds, above = Math.log(high / mean) / DEVIATIONS;
      const below = bounded(low, mean) ? Math.log(mean / low) / DEVIATIONS : above;
      return normals(seed, 0).map(normal => normal * (normal < 0 ? below : above));
    }
    const [bound, shift, ...weights] = made[seed][index], least = bound === null ? -Infinity : bound / THOUSANDTHS;
    return each(draw => {
      const total = weights.reduce((sum, weight, column) => weight ? sum + weight * normals(seed, column)[draw] : sum, shift);
      return Math.max(total / THOUSANDTHS, least);
    });
  }

  /* Draws of a quantity of a time, from its values at the three seconds: between them a power of the
     time, beyond them the same power, limited to 0 to 1. */
  function along(seconds, values, drawn) {
    const x = seconds.map(Math.log), y = values.map(value => Math.log(clipped(value, LEAST, MOST)));
    const powers = [0, 1].map(from => (y[from + 1] - y[from]) / (x[from + 1] - x[from]));
    const known = powers.filter(isFinite).map(power => clipped(power, 0, 1));
    return drawn.map(log => {
      const at = x[1] + log, inside = clipped(at, x[0], x[2]);
      const within = inside === x[1] ? 0 : powers[inside < x[1] ? 0 : 1] * (inside - x[1]);
      const beyond = at === inside ? 0 : known.at(at < inside ? 0 : -1) * (at - inside);
      return Math.exp(y[1] + within + beyond);
    });
  }

  function average(values) { return values.reduce((sum, value) => sum + value, 0) / values.length; }

  function share(drawn, test) { return average(drawn.map((value, draw) => test(value, draw) ? 1 : 0)); }

  /* The ends of the 90 % range of one quantity's draws over another's. */
  function ratio(drawn, other) {
    const sorted = drawn.map((value, draw) => value / other[draw]).sort((one, next) => one - next);
    return [0.05, 0.95].map(part => {
      const at = part * (DRAWS - 1), below = Math.floor(at);
      return sorted[below] + (at - below) * (sorted[Math.min(below + 1, DRAWS - 1)] - sorted[below]);
    });
  }

  /* For each of several costs: the probability of being the least, and the mean extra cost over the
     least, as a share of the latter. */
  function odds(costs) {
    const least = each(draw => Math.min(...costs.map(cost => cost[draw])));
    const first = costs.map(cost => cost.map((value, draw) => value - least[draw] <= 1e-9 * least[draw] ? 1 : 0));
    const ties = each(draw => first.reduce((sum, wins) => sum + wins[draw], 0));
    return {
      shares: first.map(wins => average(wins.map((win, draw) => win / ties[draw]))),
      regrets: costs.map(drawn => average(drawn.map((cost, draw) => cost / least[draw] - 1)))
    };
  }

  /* Add to each way its draws, the probabilities of meeting the limits ``most`` on seconds and total,
     and that of being the cheapest in its currency, among ``all`` or those within the limits. */
  function weigh(ways, made, most, all) {
    ways.forEach(way => {
      const { seconds } = way.timing, drawn = draws(way.timing, made);
      Object.assign(way, { exact: seconds[0] === seconds[2], drawn: {}, kept: {} });
      ["seconds", "total"].forEach(key => {
        way.drawn[key] = along(seconds, [way.low[key], way.mean[key], way.high[key]], drawn);
        if (isFinite(most[key]) && !way.exact) { way.kept[key] = share(way.drawn[key], value => value <= most[key]); }
      });
    });
    const [first] = ways, rivals = ways.filter(
      way => way.plan.currency === first.plan.currency && (all || !way.misses)
    );
    if (rivals.length < 2 || (first.misses && !all)) { return; }
    const { shares, regrets } = odds(rivals.map(way => way.drawn.total));
    rivals.forEach((way, at) => { Object.assign(way, { wins: shares[at], regret: regrets[at] }); });
  }

  function scenarios(part) {
    const percent = Math.round(100 * part);
    if (part > 0 && part < 1 && percent % 100 === 0) { return percent ? "over 99 of 100" : "under 1 of 100"; }
    return `${percent} of 100`;
  }

  function digits(value) { return window.epochcostShown.rounded(value, value < 10 ? 2 : 3); }

  /* How often the choice is the cheapest of all or of the ``chosen`` machines, and the mean loss otherwise. */
  function sureness({ wins, regret, kept, misses }, chosen) {
    if (wins === undefined || misses) { return ""; }
    const among = (chosen ? "compared machines" : "machines") + (Object.keys(kept).length ? " within the limits" : "");
    const more = regret >= 0.005 * (1 - wins) ? `${window.epochcostShown.rounded(100 * regret / (1 - wins), 2)} % more than` : "about as much as";
    const lost = wins < 1 ? `; in the others, it costs ${more} the cheapest` : "";
    return `It costs least of all ${among} with this kind of software in ${scenarios(wins)} scenarios${lost}. `;
  }

  /* How often a way meets the limits; empty for a time without a range. */
  function limits({ kept }) {
    const met = [["seconds", "in time in "], ["total", "within the budget in "]].filter(([key]) => kept && key in kept);
    return met.map(([key, words]) => words + scenarios(kept[key])).join(", ");
  }

  /* The cost of a way in units of the choice's, if both are compared and the choice costs something. */
  function multiple(way, best) {
    if (way.wins === undefined || way === best || !best.mean.total) { return ""; }
    const [low, high] = ratio(way.drawn.total, best.drawn.total).map(digits), times = digits(way.mean.total / best.mean.total);
    const equal = way.mean.total === best.mean.total ? "the same cost" : "about the same cost";
    return (times === "1" ? equal : `${times} times the cost`) + (low === high ? "" : ` (${low} to ${high})`);
  }

  /* The 90 % range of the factor between two ways, and how often the better one is better. */
  function beside(less, more, key, word) {
    if (less.exact && more.exact) { return " (neither has a range)"; }
    const [low, high] = ratio(more.drawn[key], less.drawn[key]).map(digits);
    const wins = share(less.drawn[key], (value, draw) => value < more.drawn[key][draw]);
    const likely = low === high ? "" : `likely ${low} to ${high} times; `;
    return ` (${likely}${word} in ${scenarios(wins)} scenarios)`;
  }

  window.epochcostOdds = { beside, bounded, limits, multiple, ratio, scenarios, sureness, weigh };
})();
