/** As much of a document as Preact needs to render: elements with their attributes, text, and clicks. */
import { render } from 'preact';
import type { ComponentChild, ContainerNode } from 'preact';

class FakeNode {
  parentNode: FakeElement | null = null;

  get nextSibling(): FakeNode | null {
    const siblings = this.parentNode?.childNodes ?? [];
    // Preact asks for that of a new node, which is the last one.
    return siblings[siblings.lastIndexOf(this) + 1] ?? null;
  }

  remove(): void {
    this.parentNode?.removeChild(this);
  }
}

class FakeText extends FakeNode {
  readonly nodeType = 3;
  data: string;

  constructor(data: string) {
    super();
    this.data = data;
  }
}

export class FakeElement extends FakeNode {
  readonly nodeType = 1;
  readonly namespaceURI = 'http://www.w3.org/1999/xhtml';
  readonly localName: string;
  readonly childNodes: FakeNode[] = [];
  readonly attributes = new Map<string, string>();
  readonly style: Record<string, string> = {};
  readonly #listeners = new Map<string, (event: unknown) => void>();

  constructor(name: string) {
    super();
    this.localName = name;
  }

  get firstChild(): FakeNode | null {
    return this.childNodes[0] ?? null;
  }

  insertBefore(node: FakeNode, before: FakeNode | null): FakeNode {
    node.parentNode?.removeChild(node);
    const at = before === null ? this.childNodes.length : this.childNodes.indexOf(before);
    this.childNodes.splice(at, 0, node);
    node.parentNode = this;
    return node;
  }

  removeChild(node: FakeNode): void {
    this.childNodes.splice(this.childNodes.indexOf(node), 1);
    node.parentNode = null;
  }

  setAttribute(name: string, value: unknown): void {
    this.attributes.set(name.toLowerCase(), String(value));
  }

  removeAttribute(name: string): void {
    this.attributes.delete(name.toLowerCase());
  }

  addEventListener(type: string, listener: (event: unknown) => void): void {
    this.#listeners.set(type, listener);
  }

  click(): void {
    this.#listeners.get('click')?.call(this, { type: 'click' });
  }

  get text(): string {
    return this.childNodes.map((node) => (node instanceof FakeElement ? node.text : (node as FakeText).data)).join('');
  }

  /** This element and all in it, in the order of the document. */
  all(): FakeElement[] {
    return [this, ...this.childNodes.flatMap((node) => (node instanceof FakeElement ? node.all() : []))];
  }

  find(name: string): FakeElement[] {
    return this.all().filter(({ localName }) => localName === name);
  }
}

const document = {
  createElement: (name: string) => new FakeElement(name),
  createElementNS: (_: string, name: string) => new FakeElement(name),
  createTextNode: (data: string) => new FakeText(data),
};

/** Renders into an element of its own. Again into the same one: a change. */
export function shown(content: ComponentChild, into = new FakeElement('main')): FakeElement {
  Object.assign(globalThis, { document });
  render(content, into as unknown as ContainerNode);
  return into;
}

/** Without it, other files of the same worker would take it for a browser. */
export function removeDocument(): void {
  Reflect.deleteProperty(globalThis, 'document');
}

/** Lets Preact render what a click has changed. */
export async function rendered(): Promise<void> {
  await new Promise((resolve) => {
    setTimeout(resolve);
  });
}
