/**
 * A function that derives its value once from each object, and keeps it for the lifetime of the object. The object must never
 * change.
 *
 * @param derive depends on the object only
 */
export function derived<From extends object, Value>(derive: (from: From) => Value): (from: From) => Value {
  const values = new WeakMap<From, { readonly value: Value }>();
  return (from) => {
    let known = values.get(from);
    if (known === undefined) {
      known = { value: derive(from) };
      values.set(from, known);
    }
    return known.value;
  };
}
