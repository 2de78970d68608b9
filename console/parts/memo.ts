/** A component that is called again only if one of its props is another value. */
import { h } from 'preact';
import type { Component, FunctionComponent } from 'preact';

export function memo<P extends object>(inner: FunctionComponent<P>): FunctionComponent<P> {
  return function Memo(this: Component<P>, props: P) {
    this.shouldComponentUpdate = (next: Readonly<P>) => isOther(next, props) || isOther(props, next);
    return h(inner, props);
  } as FunctionComponent<P>;
}

function isOther(one: object, other: object): boolean {
  return Object.entries(one).some(([name, value]) => !Object.is(value, Reflect.get(other, name)));
}
