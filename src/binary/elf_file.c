/* SPDX-License-Identifier: MIT */
typedef int placeholder_binary;
