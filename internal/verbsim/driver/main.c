/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>

/* The program ends in one of its own ways only: what it leaves open the kernel closes. */
int main(int argc, char **argv)
{
	struct driver *d = calloc(1, sizeof(*d));
	const struct scenario *s;

	if (!d)
		return 1;
	d->argv = argv;
	s = options_parse(&d->opt, argc, argv);
	control_signals();
	driver_open(d);
	if (d->opt.broken_exec)
		return run_to_broken_exec(d, s);
	if (s->run(d))
		fail(d, "the scenario could not be run");
	d->finished_ns = now_ns();
	books_balance(d);
	if (!s->leaves_work)
		driver_close(d);
	if (truth_write(d, ""))
		fail(d, "the truth could not be written");
	summary_print(d);
	return d->failed ? 1 : 0;
}
