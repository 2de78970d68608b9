/** SHA-256 in lower-case hexadecimal: the name of stored bytes. */
export async function sha256Hex(bytes: Uint8Array): Promise<string> {
  // A view of a shared buffer has no digest; the bytes of files are never shared.
  const digest = await crypto.subtle.digest('SHA-256', bytes as Uint8Array<ArrayBuffer>);
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
