/** The `Host` of a request (H5): what it names, and which names are of this machine. */

/** A name or an address, and a port if there is one. Two headers arrive as one with a comma. */
const HOST = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?$/i;

/** @returns the name or address of a `Host` header, without its port; null if it is malformed */
export function nameOfHost(host: string): string | null {
  const name = HOST.exec(host)?.[1];
  return name !== undefined && URL.canParse(`http://${host}`) ? name : null;
}

/** @param name a name or an address, IPv6 with or without brackets */
export function isLoopbackName(name: string): boolean {
  const bare = name
    .replace(/^\[|\]$/g, '')
    .toLowerCase()
    .replace(/^::ffff:(?=\d+\.)/, '');
  return bare === 'localhost' || bare === '::1' || /^127(\.\d{1,3}){3}$/.test(bare);
}
