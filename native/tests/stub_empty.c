/* SPDX-License-Identifier: MIT */
extern int ktls_stub_not_empty;
int ktls_stub_not_empty = 0;
