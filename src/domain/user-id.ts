/** The rule for ids of users: the same wherever a session gets one, a token names one, or a list is filtered by one (T3, C6). */

/** Characters are code points. A surrogate without its pair has no encoding in a URL or a token. */
export const USER_ID = /^[^\p{Cc}\p{Cs}]{1,256}$/u;

/** After "must be". */
export const USER_ID_RULE = '1 to 256 characters, without control characters, in valid Unicode';
