/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/* The queue tracker follows processes and consumers in the kernel alike. What
 * differs is where the structures of the verbs are and how they are laid out: an
 * object that defines KERNEL_VERBS reads those of the kernel. Both readers give
 * the layout of user space. */
#ifdef KERNEL_VERBS
#include "kernel_reader.h"
#else
#include "user_reader.h"
#endif
