/* The interpreter of bill programs (epochcost.cost.program). Tests compare it with the cost engine
   and with another interpreter, in a real browser. */
(function () {
  "use strict";

  // The largest rounding error of a whole number of steps.
  var SLACK = 1e-12;

  var OPERATORS = {
    "+": function (a, b) { return a + b; },
    "-": function (a, b) { return a - b; },
    "*": function (a, b) { return a * b; },
    "/": function (a, b) { return a / b; },
    "exp": Math.exp,
    "expm1": Math.expm1,
    "log": Math.log,
    "sqrt": Math.sqrt,
    "ceil": function (a) { return Math.ceil(a * (1 - SLACK)); },
    "max": Math.max,
    "min": Math.min
  };
  var COMPARISONS = {
    "<": function (a, b) { return a < b; },
    "<=": function (a, b) { return a <= b; }
  };

  /* A named value is evaluated on first use. */
  function named(name, program, known) {
    if (!Object.hasOwn(known, name)) {
      if (!Object.hasOwn(program.values, name)) { throw new Error("no value is called " + name); }
      known[name] = value(program.values[name], program, known);
    }
    return known[name];
  }

  function value(expression, program, known) {
    if (typeof expression === "number") { return expression; }
    if (typeof expression === "string") { return named(expression, program, known); }
    var operator = expression[0];
    function of(part) { return value(part, program, known); }
    if (operator === "if") {
      var asked = expression[1];
      return of(COMPARISONS[asked[0]](of(asked[1]), of(asked[2])) ? expression[2] : expression[3]);
    }
    return OPERATORS[operator].apply(null, expression.slice(1).map(of));
  }

  /* The bill of a usage: lines of label and amount, their total, and the wall time in seconds. */
  function run(program, usage) {
    var known = Object.assign({}, program.inputs, usage);
    function of(expression) { return value(expression, program, known); }
    var lines = program.lines.map(function (line) { return { label: line[0], amount: of(line[1]) }; });
    var total = lines.reduce(function (so_far, line) { return so_far + line.amount; }, 0);
    return { lines: lines, total: total, elapsed_seconds: of(program.elapsed_seconds) };
  }

  /* The answers of a program by name. */
  function answers(program, inputs) {
    var known = Object.assign({}, inputs);
    return Object.fromEntries(Object.entries(program.answers).map(function (entry) {
      return [entry[0], value(entry[1], program, known)];
    }));
  }

  window.epochcostBill = { answers: answers, run: run };
})();
