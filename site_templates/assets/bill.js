/* The interpreter of bill programs (epochcost.cost.program). Tests compare it with the cost engine
   and with another interpreter, in a real browser. */
(() => {
  "use strict";

  // The largest rounding error of a whole number of steps.
  const SLACK = 1e-12;

  const OPERATORS = {
    "+": (a, b) => a + b,
    "-": (a, b) => a - b,
    "*": (a, b) => a * b,
    "/": (a, b) => a / b,
    "exp": Math.exp,
    "expm1": Math.expm1,
    "log": Math.log,
    "sqrt": Math.sqrt,
    "ceil": a => Math.ceil(a * (1 - SLACK)),
    "max": Math.max,
    "min": Math.min
  };
  const COMPARISONS = { "<": (a, b) => a < b, "<=": (a, b) => a <= b };

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
    const [operator, ...parts] = expression, of = part => value(part, program, known);
    if (operator !== "if") { return OPERATORS[operator](...parts.map(of)); }
    const [[comparison, left, right], yes, no] = parts;
    return of(COMPARISONS[comparison](of(left), of(right)) ? yes : no);
  }

  /* The bill of a usage: lines of label and amount, their total, and the wall time in seconds. */
  function run(program, usage) {
    const known = { ...program.inputs, ...usage }, of = expression => value(expression, program, known);
    const lines = program.lines.map(([label, amount]) => ({ label, amount: of(amount) }));
    const total = lines.reduce((sum, line) => sum + line.amount, 0);
    return { lines, total, elapsed_seconds: of(program.elapsed_seconds) };
  }

  /* The answers of a program by name. */
  function answers(program, inputs) {
    const known = { ...inputs }, entries = Object.entries(program.answers);
    return Object.fromEntries(entries.map(([name, expression]) => [name, value(expression, program, known)]));
  }

  window.epochcostBill = { answers, run };
})();
