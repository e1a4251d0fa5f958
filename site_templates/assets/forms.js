/* Forms whose fields are stored in the page's address by their names, so that it asks again. */
(() => {
  "use strict";

  const NUMBER = /^(-?\d*\.?\d+(e[-+]?\d\d?)?)?$/i; // as fields accept them without a warning, or empty

  /* By name only: a form also has its fields by number, and a length. */
  function fields(form) { return Array.from(form.elements).filter(field => field.name); }

  function number(form, name, otherwise) {
    const field = form.elements[name];
    return field.value === "" || !field.validity.valid ? otherwise : Number(field.value);
  }

  /* Offer only some options of a select, and choose the first of them if another is chosen. */
  function offer(select, able) {
    const options = Array.from(select.options);
    options.forEach(option => { option.hidden = option.disabled = !able(option.value); });
    if (!able(select.value)) { select.value = options.find(option => !option.disabled)?.value; }
  }

  /* Say below a field which numbers it expects, if it ignores its value. */
  function explain(field, wrong) {
    const [least, most] = [field.min, field.max].map(end => Number(end).toLocaleString("en", { maximumSignificantDigits: 9 }));
    const text = field.type === "number" ? `Ignored: enter a number from ${least} to ${most}.` : "Ignored: not in this list.";
    field.parentElement.querySelector("[role=alert]")?.remove();
    if (wrong) { field.after(window.epochcostShown.element("small", text, { role: "alert" })); }
  }

  /* The address contains the fields that differ from their defaults; if any does, also ``always``. */
  function remember(form, defaults, always) {
    const state = new URLSearchParams(), differing = fields(form).filter(
      field => field.validity.valid && field.value !== defaults.get(field.name)
    );
    fields(form).filter(
      field => differing.includes(field) || (differing.length && always.includes(field.name))
    ).forEach(field => state.set(field.name, field.value));
    const query = String(state) && `?${state}`;
    history.replaceState(history.state, "", location.pathname + query + location.hash);
  }

  /* An address may contain anything: a field accepts only values that a reader could enter. */
  function recall(form, state) {
    fields(form).filter(field => state.has(field.name)).forEach(field => {
      const before = field.value, text = state.get(field.name);
      if (field.type !== "number" || NUMBER.test(text)) { field.value = text; }
      if (field.value !== text || !field.validity.valid) { field.value = before; }
    });
  }

  /* Whether a field accepts its value, and has that of the address; a list may have it by its words. */
  function heeded(field, state) {
    const asked = state.get(field.name) ?? field.value;
    return field.validity.valid && [field.value, field.selectedOptions?.[0]?.text].includes(asked);
  }

  /* Fill a form from the address, answer, and answer again after each change. ``answer`` gets the
     values of the address, at first. */
  async function begin(form, answer, always) {
    const defaults = new FormData(form), state = new URLSearchParams(location.search);
    async function again() {
      await answer(new URLSearchParams()); // may change which values fields accept
      fields(form).forEach(field => explain(field, !field.validity.valid));
      remember(form, defaults, always);
    }
    recall(form, state);
    await answer(state);
    fields(form).filter(field => !heeded(field, state)).forEach(field => explain(field, true)); // lists are full now
    form.addEventListener("input", again);
    form.addEventListener("change", event => event.target.reportValidity());
    form.addEventListener("submit", event => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(again));
    form.dataset.state = "ready";
  }

  /* Begin all forms of a page that match a selector; ``make`` gives the function that answers one. */
  function onForms(selector, make, always) {
    window.epochcostShown.onPage(() => document.querySelectorAll(`${selector}:not([data-state])`).forEach(form => {
      form.dataset.state = "loading";
      make(form).then(answer => begin(form, answer, always)).catch(
        error => console.error(`epochcost: no answer of ${selector}:`, error)
      );
    }));
  }

  window.epochcostForms = { number, offer, onForms };
})();
