//! `1 / sqrt(count)` in fixed point, for CoDel's control law.

/// Performs one step of Newton's method from `root` towards `1 / sqrt(count)`, in units of 2^-32.
pub(super) const fn newton(root: u32, count: u32) -> u32 {
    let square = ((root as u64 * root as u64) >> 32) as u32;
    // At most 3 in units of 2^-30, so that the product fits in 64 bits. Far from the root the slope may be negative.
    let slope = (3u64 << 32).wrapping_sub(count as u64 * square as u64) >> 2;
    (slope.wrapping_mul(root as u64) >> 31) as u32
}

/// Number of counts with a root in the table. For small counts, one Newton step is inaccurate.
const TABLE: usize = 16;

const fn table() -> [u32; TABLE] {
    let mut roots = [u32::MAX; TABLE];
    let mut count = 2;
    while count < TABLE {
        let mut root = roots[count - 1];
        let mut steps = 0;
        while steps < 8 {
            root = newton(root, count as u32);
            steps += 1;
        }
        roots[count] = root;
        count += 1;
    }
    roots
}

static ROOTS: [u32; TABLE] = table();

/// Returns the root of `count`; `near` is the root of the previous or next count.
pub(super) fn root_near(near: u32, count: u32) -> u32 {
    match ROOTS.get(count as usize) {
        Some(root) => *root,
        None => newton(near, count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(count: u32) -> f64 {
        4_294_967_296.0 / f64::from(count).sqrt()
    }

    #[test]
    fn roots_are_right_to_two_parts_in_a_thousand_up_and_down() {
        let mut root = u32::MAX;
        for count in (1..5000).chain((1..5000).rev()) {
            root = root_near(root, count);
            let error = f64::from(root) / exact(count) - 1.0;
            assert!(error.abs() < 2e-3, "{count}: {error}");
        }
    }

    #[test]
    fn roots_of_the_table_are_exact() {
        for (count, root) in ROOTS.iter().enumerate().skip(1) {
            assert!(
                (f64::from(*root) - exact(count as u32)).abs() < 2.0,
                "{count}"
            );
        }
    }
}
