/* The interpreter of bill programs; epochcost.cost.program says what one is. Tests hold it to the
   cost engine and to another interpreter, in a real browser. */
(function () {
  "use strict";

  // What a binary rounding adds to a whole number of steps, or takes from it.
  var SLACK = 1e-12;

  var OPERATORS = {
    "+": function (a, b) { return a + b; },
    "-": function (a, b) { return a - b; },
    "*": function (a, b) { return a * b; },
    "/": function (a, b) { return a / b; },
    "^": Math.pow,
    "exp": Math.exp,
    "expm1": Math.expm1,
    "sqrt": Math.sqrt,
    "ceil": function (a) { return Math.ceil(a * (1 - SLACK)); },
    "floor": function (a) { return Math.floor(a * (1 + SLACK)); },
    "max": Math.max,
    "min": Math.min
  };
  var COMPARISONS = {
    "<": function (a, b) { return a < b; },
    "<=": function (a, b) { return a <= b; }
  };

  /* Names are looked up in the states of the folds around, then among what is known by now. */
  function named(name, program, known, states) {
    if (states && Object.hasOwn(states, name)) { return states[name]; }
    if (!Object.hasOwn(known, name)) {
      if (!Object.hasOwn(program.values, name)) { throw new Error("no value is called " + name); }
      known[name] = value(program.values[name], program, known, null);
    }
    return known[name];
  }

  function value(expression, program, known, states) {
    if (typeof expression === "number") { return expression; }
    if (typeof expression === "string") { return named(expression, program, known, states); }
    var operator = expression[0];
    function of(part) { return value(part, program, known, states); }
    if (operator === "if") {
      var asked = expression[1];
      return of(COMPARISONS[asked[0]](of(asked[1]), of(asked[2])) ? expression[2] : expression[3]);
    }
    if (operator === "sum") { return sum(expression, program, known, of); }
    return OPERATORS[operator].apply(null, expression.slice(1).map(of));
  }

  function sum(expression, program, known, of) {
    var count = of(expression[1]), table = expression[2], names = Object.keys(table);
    var states = {}, total = 0;
    names.forEach(function (name) { states[name] = of(table[name][0]); });
    for (var index = 0; index < count; index += 1) {
      var inside = Object.assign({}, states, { i: index });
      total += value(expression[3], program, known, inside);
      names.forEach(function (name) { states[name] = value(table[name][1], program, known, inside); });
    }
    return total;
  }

  /* The bill of a usage: lines of label and amount, their total, and the seconds on the wall. */
  function run(program, usage) {
    var known = Object.assign({}, program.inputs, usage);
    function of(expression) { return value(expression, program, known, null); }
    var lines = program.lines.map(function (line) { return { label: line[0], amount: of(line[1]) }; });
    var total = lines.reduce(function (so_far, line) { return so_far + line.amount; }, 0);
    return { lines: lines, total: total, elapsed_seconds: of(program.elapsed_seconds) };
  }

  window.epochcostBill = { run: run };
})();
