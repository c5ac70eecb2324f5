//! Groups of optional settings.

use serde::de::MapAccess;

/// Settings about one subject.
pub trait SettingsGroup: Default {
    /// Reads the value of a member that belongs to this group. False if it does not; its value is not read then.
    ///
    /// Serde's `flatten` would do the same, but it loses the position of an error, and with it the name of the member
    /// that is wrong.
    fn read<'de, A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error>;

    /// Takes over every setting that `other` has.
    fn adopt(&mut self, other: Self);

    /// Whether no setting is given.
    fn is_empty(&self) -> bool;
}

/// Declares a group: each setting with its type and its name in JSON, and other names that it goes by.
macro_rules! group {
    (
        $(#[$about_group:meta])*
        pub struct $group:ident {
            $($(#[$about:meta])* $setting:ident: $type:ty = $name:literal $(| $alias:literal)*,)*
        }
    ) => {
        $(#[$about_group])*
        #[derive(Debug, Clone, Default)]
        pub struct $group {
            $($(#[$about])* pub $setting: Option<$type>,)*
        }

        impl $crate::group::SettingsGroup for $group {
            fn read<'de, A: serde::de::MapAccess<'de>>(
                &mut self,
                name: &str,
                members: &mut A,
            ) -> Result<bool, A::Error> {
                match name {
                    $($name $(| $alias)* => self.$setting = members.next_value()?,)*
                    _ => return Ok(false),
                }
                Ok(true)
            }

            fn adopt(&mut self, other: Self) {
                $(if other.$setting.is_some() {
                    self.$setting = other.$setting;
                })*
            }

            fn is_empty(&self) -> bool {
                $(self.$setting.is_none())&&*
            }
        }
    };
}
