/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "maps/iterations.h"

/* A loop whose body the verifier checks once, whatever the bound: bpf_loop()
 * would say the same but needs Linux 5.17, bpf_for_each_map_elem() is there
 * from 5.13 on. The body returns STOP to end early; it gets the iteration from
 * its own state, and never runs more than QUEUE_DEPTH times. */
#define NEXT 0
#define STOP 1

#define LOOP_BODY(name, state_type)                                                                \
	static long name(void *map __attribute__((unused)),                                        \
			 const void *key __attribute__((unused)),                                  \
			 void *value __attribute__((unused)), state_type *state)

/* A zero that the verifier takes for any number. What a body counts up from it
 * is the same state to the verifier in every iteration; what it counts up from
 * a constant is a new state each time, until it gives up. */
volatile __u32 some_zero = 0;

#define LOOP(body, state) bpf_for_each_map_elem(&iterations, body, state, 0)
