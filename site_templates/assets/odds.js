/* Odds of a choice by joint draws, as epochcost.analysis.odds and epochcost.predict.joint compute
   them: the same seeds and weights give the same draws here. Tests hold both to each other. */
(function () {
  "use strict";

  var DRAWS = 256, THOUSANDTHS = 1000, DEVIATIONS = 1.96, WIDEST = 1000;
  var LEAST = 1e-12, MOST = 1e300; // of values whose logarithm is taken
  var columns = {}; // of standard normals, by seed

  function uniform(counter) {
    var mixed = Math.imul(counter ^ counter >>> 16, 0x85ebca6b);
    mixed = Math.imul(mixed ^ mixed >>> 13, 0xc2b2ae35);
    return (((mixed ^ mixed >>> 16) >>> 0) + 0.5) / 4294967296;
  }

  function range(count, value) { return Array.from({ length: count }, function (_, at) { return value(at); }); }

  function normals(seed, column) {
    var key = seed + " " + column;
    columns[key] = columns[key] || range(DRAWS, function (draw) {
      var counter = seed + 2 * (column * DRAWS + draw);
      return Math.sqrt(-2 * Math.log(uniform(counter | 0))) * Math.cos(2 * Math.PI * uniform(counter + 1 | 0));
    });
    return columns[key];
  }

  /* Draws of the logarithm of a timing's seconds in units of their mean; ``made`` has the shifts and
     weights of predicted ones. */
  function draws(timing, made) {
    if (timing.row === undefined) {
      var mean = timing.seconds[1], low = Math.max(timing.seconds[0], mean / WIDEST);
      var below = Math.log(mean / low) / DEVIATIONS, above = Math.log(timing.seconds[2] / mean) / DEVIATIONS;
      return normals(timing.seed, 0).map(function (normal) { return normal * (normal < 0 ? below : above); });
    }
    var row = made[timing.seed][timing.row], least = row[0] === null ? -Infinity : row[0] / THOUSANDTHS;
    return range(DRAWS, function (draw) {
      var total = row[1];
      for (var column = 2; column < row.length; column += 1) {
        if (row[column]) { total += row[column] * normals(timing.seed, column - 2)[draw]; }
      }
      return Math.max(total / THOUSANDTHS, least);
    });
  }

  /* Draws of a quantity of a time, from its values at the three seconds: between them a power of the
     time, beyond them the same power, limited to 0 to 1. */
  function along(seconds, values, drawn) {
    var x = seconds.map(Math.log);
    var y = values.map(function (value) { return Math.log(Math.min(Math.max(value, LEAST), MOST)); });
    var powers = [0, 1].map(function (from) { return (y[from + 1] - y[from]) / (x[from + 1] - x[from]); });
    var known = powers.filter(isFinite).map(function (power) { return Math.min(Math.max(power, 0), 1); });
    return drawn.map(function (log) {
      var at = x[1] + log, inside = Math.min(Math.max(at, x[0]), x[2]), from = inside < x[1] ? 0 : 1;
      var within = inside === x[1] ? 0 : powers[from] * (inside - x[1]);
      var beyond = at === inside ? 0 : known[at < inside ? 0 : known.length - 1] * (at - inside);
      return Math.exp(y[1] + within + beyond);
    });
  }

  function average(values) { return values.reduce(function (sum, value) { return sum + value; }, 0) / values.length; }

  function share(drawn, test) { return average(drawn.map(function (value, draw) { return test(value, draw) ? 1 : 0; })); }

  /* Low end, median and high end of the 90 % range of one quantity's draws over another's. */
  function ratio(drawn, other) {
    var sorted = drawn.map(function (value, draw) { return value / other[draw]; });
    sorted.sort(function (first, second) { return first - second; });
    return [0.05, 0.5, 0.95].map(function (part) {
      var at = part * (DRAWS - 1), below = Math.floor(at);
      return sorted[below] + (at - below) * (sorted[Math.min(below + 1, DRAWS - 1)] - sorted[below]);
    });
  }

  /* Costs, the choice's first: their probabilities of being the least, and the mean extra cost of
     the choice over the least, as a share of the latter. */
  function odds(costs) {
    var least = range(DRAWS, function (draw) {
      return Math.min.apply(null, costs.map(function (cost) { return cost[draw]; }));
    });
    var first = costs.map(function (cost) {
      return cost.map(function (value, draw) { return value - least[draw] <= 1e-9 * least[draw] ? 1 : 0; });
    });
    var ties = range(DRAWS, function (draw) { return first.reduce(function (sum, wins) { return sum + wins[draw]; }, 0); });
    return {
      shares: first.map(function (wins) { return average(wins.map(function (win, draw) { return win / ties[draw]; })); }),
      regret: average(costs[0].map(function (cost, draw) { return cost / least[draw] - 1; }))
    };
  }

  /* Add to each way its draws, the probabilities of meeting the limits ``most`` on seconds and total,
     and that of being the cheapest in its currency, among ``all`` or those that miss the same limits
     as the first. */
  function weigh(ways, made, most, all) {
    ways.forEach(function (way) {
      var drawn = draws(way.timing, made);
      way.exact = way.timing.seconds[0] === way.timing.seconds[2];
      way.drawn = {};
      way.kept = {};
      ["seconds", "total"].forEach(function (key) {
        way.drawn[key] = along(way.timing.seconds, [way.low[key], way.mean[key], way.high[key]], drawn);
        if (isFinite(most[key]) && !way.exact) {
          way.kept[key] = share(way.drawn[key], function (value) { return value <= most[key]; });
        }
      });
    });
    var rivals = ways.filter(function (way) {
      return way.plan.currency === ways[0].plan.currency && (all || way.misses === ways[0].misses);
    });
    if (rivals.length < 2) { return; }
    var chances = odds(rivals.map(function (way) { return way.drawn.total; }));
    rivals.forEach(function (way, at) { way.wins = chances.shares[at]; });
    rivals[0].regret = chances.regret;
  }

  function scenarios(part) {
    var percent = Math.round(100 * part);
    if (part > 0 && part < 1 && percent % 100 === 0) { return percent ? "over 99 of 100" : "under 1 of 100"; }
    return percent + " of 100";
  }

  function digits(value) { return window.epochcostShown.rounded(value, value < 10 ? 2 : 3); }

  /* How often the choice is the cheapest, and the mean loss otherwise. */
  function sureness(best) {
    if (best.wins === undefined || best.misses) { return ""; }
    var lost = 100 * best.regret / (1 - best.wins);
    var among = Object.keys(best.kept).length ? "machines within the limits" : "machines";
    return "It costs least of all " + among + " in " + scenarios(best.wins) + " scenarios" +
      (best.wins < 1 ? "; if not, it costs " + digits(lost) + " % more than the cheapest" : "") + ". ";
  }

  function digits(value) { return window.epochcostShown.rounded(value, value < 10 ? 2 : 3); }

  /* How often a way meets the limits; empty for a time without a range. */
  function limits(way) {
    return [["seconds", "in time in "], ["total", "within the budget in "]].filter(function (limit) {
      return way.kept && limit[0] in way.kept;
    }).map(function (limit) { return limit[1] + scenarios(way.kept[limit[0]]); }).join(", ");
  }

  /* The cost of a way in units of the choice's, if both are compared. */
  function multiple(way, best) {
    if (way.wins === undefined || way === best) { return ""; }
    var times = ratio(way.drawn.total, best.drawn.total).map(digits);
    return (times[1] === "1" ? "the same cost" : times[1] + " times the cost") + (times[0] === times[2] ? "" : " (" + times[0] + " to " + times[2] + ")");
  }

  /* The 90 % range of the factor between two ways, and how often the better one is better. */
  function beside(less, more, key, word) {
    if (less.exact && more.exact) { return " (neither has a range)"; }
    var times = ratio(more.drawn[key], less.drawn[key]).map(digits);
    var wins = share(less.drawn[key], function (value, draw) { return value < more.drawn[key][draw]; });
    return " (likely " + times[0] + " to " + times[2] + " times; " + word + " in " + scenarios(wins) + " scenarios)";
  }

  window.epochcostOdds = {
    along: along, beside: beside, draws: draws, limits: limits, multiple: multiple, odds: odds,
    ratio: ratio, scenarios: scenarios, share: share, sureness: sureness, weigh: weigh
  };
})();
