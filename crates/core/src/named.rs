//! Enums whose variants have names, and errors with texts.

/// Declares an enum whose variants have names in flags, files, JSON and metrics. `in` also gives each variant the name
/// of a control variable, with a prefix.
#[macro_export]
macro_rules! named {
    ($(#[$meta:meta])* $vis:vis enum $type:ident { $($(#[$doc:meta])+ $variant:ident = $name:literal,)+ }) => {
        $(#[$meta])*
        $vis enum $type {
            $($(#[$doc])+ $variant,)+
        }

        impl $type {
            /// Number of variants.
            pub const COUNT: usize = [$($name),+].len();
            /// All variants, in numerical order.
            pub const ALL: [Self; Self::COUNT] = [$(Self::$variant),+];

            /// Returns the variant's name in flags, files, tables, JSON and metrics.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
    ($(#[$meta:meta])* $vis:vis enum $type:ident in $prefix:literal {
        $($(#[$doc:meta])+ $variant:ident = $name:literal,)+
    }) => {
        $crate::named! {
            $(#[$meta])* $vis enum $type { $($(#[$doc])+ $variant = $name,)+ }
        }

        impl $type {
            /// Returns the variant's name among the control variables.
            pub const fn variable(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($prefix, $name),)+
                }
            }
        }
    };
}

/// Makes an enum of [`named!`] print its name.
#[macro_export]
macro_rules! show_by_name {
    ($type:ty) => {
        impl core::fmt::Display for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

/// Makes an enum of [`named!`] print and parse its name; the text is the error message.
#[macro_export]
macro_rules! read_by_name {
    ($type:ty, $error:literal) => {
        $crate::show_by_name!($type);

        impl core::str::FromStr for $type {
            type Err = &'static str;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                let found = Self::ALL.into_iter().find(|one| one.name() == name);
                found.ok_or($error)
            }
        }
    };
}

/// Makes a type an error. Each pattern has a text, and a cause after `from`.
#[macro_export]
macro_rules! error_texts {
    ($error:ty { $($pattern:pat => ($($text:tt)+) $(from $cause:ident)?,)+ }) => {
        #[allow(unused_variables)]
        impl core::fmt::Display for $error {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self { $($pattern => write!(f, $($text)+),)+ }
            }
        }

        #[allow(unused_variables)]
        impl core::error::Error for $error {
            fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
                match self { $($pattern => None$(.or(Some($cause as _)))?,)+ }
            }
        }
    };
}

pub(crate) use read_by_name;
