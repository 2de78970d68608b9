/**
 * The hosts that a tool may reach (X2): checks a URL, and an address that a name resolved to. Pure; rejects everything
 * that is not known to be allowed.
 */
import ipaddr from 'ipaddr.js';

/** Public unicast addresses that belong to a cloud's control plane. */
const DENIED_ADDRESSES: ReadonlySet<string> = new Set(['168.63.129.16', '169.254.169.254', '100.100.100.200']);
/** The public part of IPv6; the rest is reserved, or IPv4 in another form. */
const GLOBAL_IPV6 = ipaddr.IPv6.parseCIDR('2000::/3');
/** Parts of it that are reserved for documentation, or were used by the 6bone. */
const DENIED_RANGES = ['2001:db8::/32', '3ffe::/16', '3fff::/20'].map((range) => ipaddr.IPv6.parseCIDR(range));
const PRIVATE_SUFFIXES = (
  'localhost localdomain local internal intranet lan corp home private home.arpa ' +
  'test invalid example onion in-addr.arpa ip6.arpa'
).split(' ');
/** Public names that resolve to an address contained in the name, or to loopback. */
const REBINDING_SUFFIXES = ['nip.io', 'sslip.io', 'xip.io', 'localtest.me', 'lvh.me', 'vcap.me', 'lacolhost.com'];
const ALLOWED_PORTS: ReadonlySet<number> = new Set([80, 443, 8080, 8443]);
// White space, controls and backslashes: the URL parser drops or rewrites them, so the fetched URL would differ from
// the checked one.
const SUSPICIOUS = /[\p{Cc}\p{Zl}\p{Zp} \u00a0\\]/u;

export interface AddressPolicy {
  /** `host:port`, or `host` for every port: allowed by the operator regardless of the address. */
  readonly allowHosts: readonly string[];
  /** Whether the reason of a refusal says how the operator can allow it. Default: it does. */
  readonly remedy?: boolean;
}

export type CheckedUrl =
  | { readonly ok: true; readonly url: URL; readonly host: string; readonly allowedByOperator: boolean }
  | { readonly ok: false; readonly reason: string };

/**
 * Checks a URL: its form, scheme, its host as a literal address or a known name, and port. The reason of a refusal that
 * the operator can lift names the setting.
 */
export function checkUrl(written: string, policy: AddressPolicy): CheckedUrl {
  if (SUSPICIOUS.test(written)) return rejected('contains white space, a control character or a backslash');
  const url = parsed(written);
  if (url === null) return rejected('is not an absolute URL');
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    return rejected(`has the scheme "${url.protocol.slice(0, -1)}" (allowed: http, https)`);
  }
  if (url.username !== '' || url.password !== '') return rejected('contains a user name or password');
  // The URL parser has normalised every form of an IPv4 address (127.1, 0x7f000001, 2130706433).
  const host = url.hostname.toLowerCase().replace(/\.+$/, '');
  if (host === '') return rejected('has no host');
  const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
  if (policy.allowHosts.some((entry) => isEntry(entry, host, port))) {
    return { ok: true, url, host, allowedByOperator: true };
  }
  // The host comes first: with a private host, another port would not help.
  const reason = (isAddress(host) ? checkAddress(host) : checkName(host)) ?? checkPort(port);
  return reason === null
    ? { ok: true, url, host, allowedByOperator: false }
    : rejected(policy.remedy === false ? reason : withRemedy(reason, url, policy));
}

/** The reason why a URL's host is refused, with the setting that allows it. */
export function withRemedy(reason: string, { hostname, port, protocol }: URL, { allowHosts }: AddressPolicy): string {
  const entry = `${hostname.replace(/\.+$/, '')}:${port === '' ? (protocol === 'https:' ? 443 : 80) : port}`;
  const remedy = allowHosts.length === 0 ? `set ALLOW_HOSTS=${entry}` : `add ${entry} to ALLOW_HOSTS`;
  return `${reason}. To allow it, ${remedy}`;
}

/** Why an IP address must not be reached, or null if it is public. */
export function checkAddress(address: string): string | null {
  const literal = address.replace(/^\[|\]$/g, '');
  if (!ipaddr.IPv4.isValidFourPartDecimal(literal) && !ipaddr.IPv6.isValid(literal))
    return `resolves to "${literal}", which is not an address`;
  const parsed = ipaddr.parse(literal);
  if (parsed instanceof ipaddr.IPv6 && parsed.isIPv4MappedAddress())
    return checkAddress(parsed.toIPv4Address().toString());
  if (DENIED_ADDRESSES.has(parsed.toString())) return `resolves to ${literal}, a cloud metadata address`;
  const range = parsed.range();
  if (range !== 'unicast') return `resolves to ${literal}, which is ${RANGE_WORDS[range] ?? `a ${range} address`}`;
  if (
    parsed instanceof ipaddr.IPv6 &&
    (!parsed.match(GLOBAL_IPV6) || DENIED_RANGES.some((denied) => parsed.match(denied)))
  ) {
    return `resolves to ${literal}, which is a reserved address`;
  }
  return null;
}

/** Whether a URL's host is a literal address rather than a name. */
export function isAddress(host: string): boolean {
  return host.startsWith('[') || ipaddr.IPv4.isValidFourPartDecimal(host);
}

function checkPort(port: number): string | null {
  return ALLOWED_PORTS.has(port) ? null : `has the port ${port} (allowed: ${[...ALLOWED_PORTS].join(', ')})`;
}

function checkName(name: string): string | null {
  if (!name.includes('.')) return `names "${name}", a host of the local network`;
  const isUnder = (suffix: string): boolean => name === suffix || name.endsWith(`.${suffix}`);
  if (PRIVATE_SUFFIXES.some(isUnder)) return `names "${name}", a host that is not public`;
  if (REBINDING_SUFFIXES.some(isUnder)) return `names "${name}", which can resolve to a private address`;
  if (name.split('.')[0] === 'metadata' || isUnder('instance-data.ec2.internal')) {
    return `names "${name}", a metadata service`;
  }
  return null;
}

const RANGE_WORDS: Readonly<Record<string, string>> = {
  loopback: 'a loopback address',
  private: 'a private address',
  uniqueLocal: 'a private address',
  linkLocal: 'a link-local address',
  carrierGradeNat: 'a private address',
  unspecified: 'the unspecified address',
  broadcast: 'a broadcast address',
  multicast: 'a multicast address',
  reserved: 'a reserved address',
};

/** Whether an entry of `allowHosts` can match a URL: `host` or `host:port`, with the host as the URL parser writes it. */
export function isAllowEntry(entry: string): boolean {
  const { name = '', port } = partsOf(entry);
  if (port !== undefined && (Number(port) < 1 || Number(port) > 65_535)) return false;
  if (name === '' || name.includes('*') || name.endsWith('.') || !URL.canParse(`http://${name}/`)) return false;
  return new URL(`http://${name}/`).hostname === name;
}

/** Null if it is not an absolute URL. Parsed once: the parser of the platform costs more than all other checks. */
function parsed(written: string): URL | null {
  try {
    return new URL(written);
  } catch {
    return null;
  }
}

function partsOf(entry: string): { readonly name?: string | undefined; readonly port?: string | undefined } {
  const [, name, port] = /^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/.exec(entry.trim().toLowerCase()) ?? [];
  return { name, port };
}

function isEntry(entry: string, host: string, port: number): boolean {
  const { name, port: allowedPort } = partsOf(entry);
  return name === host && (allowedPort === undefined || Number(allowedPort) === port);
}

function rejected(reason: string): CheckedUrl {
  return { ok: false, reason };
}
