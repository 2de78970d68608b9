/**
 * Which hosts a tool may talk to (X2): judges a URL by what can be seen in it, and an address that a
 * name was resolved to. Pure; refuses what it does not know.
 */
import ipaddr from 'ipaddr.js';

/** Addresses that are unicast and public by their range, but belong to a cloud's own control plane. */
const DENIED_ADDRESSES: ReadonlySet<string> = new Set(['168.63.129.16', '169.254.169.254', '100.100.100.200']);
/** All of IPv6 that is given out to the public; the rest is reserved, or IPv4 in another form. */
const GLOBAL_IPV6 = ipaddr.IPv6.parseCIDR('2000::/3');
/** Parts of it that are for documentation, or were for the 6bone. */
const DENIED_RANGES = ['2001:db8::/32', '3ffe::/16', '3fff::/20'].map((range) => ipaddr.IPv6.parseCIDR(range));
const PRIVATE_SUFFIXES = (
  'localhost localdomain local internal intranet lan corp home private home.arpa ' +
  'test invalid example onion in-addr.arpa ip6.arpa'
).split(' ');
/** Public names that resolve to whatever address is written in them, or to loopback. */
const REBINDING_SUFFIXES = ['nip.io', 'sslip.io', 'xip.io', 'localtest.me', 'lvh.me', 'vcap.me', 'lacolhost.com'];
const ALLOWED_PORTS: ReadonlySet<number> = new Set([80, 443, 8080, 8443]);
// white space, controls, backslashes: the URL parser drops or rewrites them, so the fetched URL would differ from the checked one
// oxlint-disable-next-line no-control-regex -- control characters are what this looks for
const SUSPICIOUS = /[\u0000-\u0020\u007f-\u009f\\\u00a0\u2028\u2029]/;

export interface AddressPolicy {
  /** `host:port`, or `host` for every port: what the operator lets through whatever its address. */
  readonly allowHosts: readonly string[];
}

export type Judged =
  | { readonly ok: true; readonly url: URL; readonly host: string; readonly allowedByOperator: boolean }
  | { readonly ok: false; readonly reason: string };

/** Judges one URL: its form, scheme, port, and its host as a literal address or a known name. */
export function judgeUrl(written: string, policy: AddressPolicy): Judged {
  if (SUSPICIOUS.test(written)) return refused('holds white space, a control character or a backslash');
  if (!URL.canParse(written)) return refused('is not an absolute URL');
  const url = new URL(written);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    return refused(`has the scheme "${url.protocol.slice(0, -1)}" (allowed: http, https)`);
  }
  if (url.username !== '' || url.password !== '') return refused('carries a user name or password');
  // the URL parser has made every spelling of an IPv4 address (127.1, 0x7f000001, 2130706433) canonical
  const host = url.hostname.toLowerCase().replace(/\.+$/, '');
  if (host === '') return refused('has no host');
  const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
  if (policy.allowHosts.some((entry) => isEntry(entry, host, port))) {
    return { ok: true, url, host, allowedByOperator: true };
  }
  if (!ALLOWED_PORTS.has(port)) {
    return refused(`has the port ${port} (allowed: ${[...ALLOWED_PORTS].join(', ')})`);
  }
  const reason = isAddress(host) ? judgeAddress(host) : judgeName(host);
  return reason === null ? { ok: true, url, host, allowedByOperator: false } : refused(reason);
}

/** Why an IP address may not be talked to, or null when it is public. */
export function judgeAddress(address: string): string | null {
  const literal = address.replace(/^\[|\]$/g, '');
  if (!ipaddr.IPv4.isValidFourPartDecimal(literal) && !ipaddr.IPv6.isValid(literal))
    return `has "${literal}", which is not an address`;
  const parsed = ipaddr.parse(literal);
  if (parsed instanceof ipaddr.IPv6 && parsed.isIPv4MappedAddress())
    return judgeAddress(parsed.toIPv4Address().toString());
  if (DENIED_ADDRESSES.has(parsed.toString())) return `leads to ${literal}, a cloud metadata address`;
  const range = parsed.range();
  if (range !== 'unicast') return `leads to ${literal}, which is ${RANGE_WORDS[range] ?? `a ${range} address`}`;
  if (
    parsed instanceof ipaddr.IPv6 &&
    (!parsed.match(GLOBAL_IPV6) || DENIED_RANGES.some((denied) => parsed.match(denied)))
  ) {
    return `leads to ${literal}, which is a reserved address`;
  }
  return null;
}

/** Whether a URL's host is a literal address rather than a name. */
export function isAddress(host: string): boolean {
  return host.startsWith('[') || ipaddr.IPv4.isValidFourPartDecimal(host);
}

function judgeName(name: string): string | null {
  if (!name.includes('.')) return `names "${name}", a host of the local network`;
  const isUnder = (suffix: string): boolean => name === suffix || name.endsWith(`.${suffix}`);
  if (PRIVATE_SUFFIXES.some(isUnder)) return `names "${name}", a host that is not public`;
  if (REBINDING_SUFFIXES.some(isUnder)) return `names "${name}", which can stand for a private address`;
  if (name.split('.')[0] === 'metadata' || isUnder('instance-data.ec2.internal')) {
    return `names "${name}", a metadata service`;
  }
  return null;
}

const RANGE_WORDS: Readonly<Record<string, string>> = {
  loopback: 'this machine itself',
  private: 'a private address',
  uniqueLocal: 'a private address',
  linkLocal: 'a link-local address',
  carrierGradeNat: 'a private address',
  unspecified: 'no address at all',
  broadcast: 'a broadcast address',
  multicast: 'a multicast address',
  reserved: 'a reserved address',
};

function isEntry(entry: string, host: string, port: number): boolean {
  const [, name, allowedPort] = /^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/.exec(entry.trim().toLowerCase()) ?? [];
  return name === host && (allowedPort === undefined || Number(allowedPort) === port);
}

function refused(reason: string): Judged {
  return { ok: false, reason };
}
